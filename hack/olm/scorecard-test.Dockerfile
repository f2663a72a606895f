# A stand-in for quay.io/operator-framework/scorecard-test: the same command, built of the same version.
FROM scratch
LABEL com.example.memcached-operator.stand-in=true
COPY scorecard-test /usr/local/bin/scorecard-test
USER 1001
ENTRYPOINT ["/usr/local/bin/scorecard-test"]
