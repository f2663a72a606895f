# A stand-in for quay.io/operator-framework/olm: the same commands, built of the same version. cp is what a bundle is
# unpacked with.
FROM scratch
LABEL com.example.memcached-operator.stand-in=true
COPY olm catalog package-server cpb /bin/
COPY busybox /bin/cp
USER 1001
