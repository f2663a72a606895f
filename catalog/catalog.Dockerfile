# The image that OLM serves the catalog from. `make catalog` has written bin/configs and bin/cache, and `make catalog-build`
# says which opm it is based on: the one of config/images/images.env.
ARG OPM_IMAGE
FROM ${OPM_IMAGE}

LABEL operators.operatorframework.io.index.configs.v1=/configs

COPY bin/configs /configs/
# Worked out once, and not by each pod when it starts. Made of files, so that no tool has to run opm for this image.
COPY bin/cache /tmp/cache/

ENTRYPOINT ["/bin/opm"]
CMD ["serve", "/configs", "--cache-dir=/tmp/cache"]
