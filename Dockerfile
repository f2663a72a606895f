# The manager's image. BuildKit, podman and buildah all build it; `make docker-buildx` for several architectures.

# The builder runs on the machine's own architecture and cross-compiles. The tag follows Go 1.26's patch releases;
# go.mod says what is needed at least, and Go fetches that toolchain should the image be behind.
FROM --platform=$BUILDPLATFORM registry.access.redhat.com/ubi9/go-toolset:1.26 AS builder
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=0.1.0
ENV CGO_ENABLED=0 GOTOOLCHAIN=auto

# Modules first: this layer is reused until go.mod or go.sum changes.
COPY go.mod go.sum ./
RUN go mod download

COPY main.go ./
COPY api/ api/
COPY controllers/ controllers/
COPY internal/ internal/
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /tmp/manager .

FROM registry.access.redhat.com/ubi9/ubi-minimal:9.8
ARG VERSION=0.1.0

# What Red Hat's certification asks for; they also replace the values that ubi-minimal sets for itself.
LABEL name="example-inc/memcached-operator" \
      vendor="Example Inc." \
      maintainer="The Memcached Operator Authors <memcached-operator@example.com>" \
      version="$VERSION" \
      release="1" \
      url="https://github.com/example-inc/memcached-operator" \
      summary="Runs memcached on Kubernetes and OpenShift" \
      description="The manager of the Memcached operator: it turns Memcached resources into running, observable caches." \
      io.k8s.display-name="Memcached Operator" \
      io.k8s.description="The manager of the Memcached operator: it turns Memcached resources into running, observable caches." \
      io.openshift.tags="memcached,cache,operator"

COPY LICENSE /licenses/LICENSE
COPY --from=builder /tmp/manager /manager

# A number, so that the kubelet can tell that it isn't root. OpenShift runs it under a number of its own choice.
USER 1001
ENTRYPOINT ["/manager"]
