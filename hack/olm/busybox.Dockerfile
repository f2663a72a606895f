# A stand-in for images of which only a few tools are used: Debian's busybox by the names of these.
FROM scratch
LABEL com.example.memcached-operator.stand-in=true
COPY busybox /bin/sh
COPY busybox /bin/cat
COPY busybox /bin/gzip
COPY busybox /bin/tar
USER 1001
