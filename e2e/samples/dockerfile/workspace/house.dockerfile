FROM debian:12 AS ⟦build⟧build
RUN echo wall > /wall && echo roof > /roof

FROM debian:12
ENV ⟦port⟧PORT=8042
COPY --from=⟦use-build⟧build /wall /house/wall
COPY --from=⟦use-again⟧build /roof /house/roof
EXPOSE ${⟦use-port⟧PORT}
CMD ["ls", "/house"]
