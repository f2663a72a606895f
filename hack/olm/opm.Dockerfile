# A stand-in for quay.io/operator-framework/opm, which catalogs are built on: opm, built of the same version, and what
# `operator-sdk run bundle` calls beside it. Its catalog is empty.
FROM scratch
LABEL com.example.memcached-operator.stand-in=true
LABEL operators.operatorframework.io.index.configs.v1=/configs
# Two empty folders: one for temporary files, one for the catalog.
COPY rootfs /
COPY opm /bin/opm
COPY grpc-health-probe /bin/grpc_health_probe
COPY busybox /bin/sh
USER 1001
ENTRYPOINT ["/bin/opm"]
