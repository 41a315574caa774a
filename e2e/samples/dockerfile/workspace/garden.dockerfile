FROM debian:12
ARG ⟦seed⟧SEED=rose
RUN echo "🎈🎈🎈🎈🎈🎈 ${⟦use-seed⟧SEED}" > /garden
