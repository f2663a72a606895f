# The image that OLM serves the catalog from. `make catalog` has written bin/catalog.
FROM quay.io/operator-framework/opm:v1.73.0

LABEL operators.operatorframework.io.index.configs.v1=/configs

COPY bin/catalog /configs/memcached-operator/
# Worked out once, here, and not by each pod when it starts.
RUN ["/bin/opm", "serve", "/configs", "--cache-dir=/tmp/cache", "--cache-only"]

ENTRYPOINT ["/bin/opm"]
CMD ["serve", "/configs", "--cache-dir=/tmp/cache"]
