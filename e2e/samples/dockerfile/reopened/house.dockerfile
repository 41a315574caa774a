FROM debian:12 AS build
RUN echo wall > /wall

FROM build AS ⟦doubled⟧doubled
RUN cat /wall /wall > /walls

FROM debian:12
COPY --from=⟦use-doubled⟧doubled /walls /house/walls
CMD ["ls", "/house"]
