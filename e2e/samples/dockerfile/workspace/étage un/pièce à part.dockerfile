FROM debian:12 AS ⟦base⟧base
RUN echo door > /door

FROM ⟦use-base⟧base
CMD ["cat", "/door"]
