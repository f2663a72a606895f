# `make help` lists what there is. Everything needs Go and make, and nothing else is fetched but Go modules: the tools
# are pinned in hack/tools/*/go.mod and built into bin/ the first time that they are needed.

# The version of the operator, and the image that carries it.
VERSION ?= 0.1.0
IMAGE_TAG_BASE ?= quay.io/example-inc/memcached-operator
IMG ?= $(IMAGE_TAG_BASE):v$(VERSION)

# The bundle for OLM: the version that this one replaces (none for the first), the catalog's channels, and whether images
# are named by their digests, as in a release, which asks their registries. The catalog's image is based on OPM_IMG.
PREVIOUS_VERSION ?=
CHANNELS ?= candidate-v1,stable-v1
DEFAULT_CHANNEL ?= stable-v1
USE_IMAGE_DIGESTS ?= false
BUNDLE_IMG ?= $(IMAGE_TAG_BASE)-bundle:v$(VERSION)
CATALOG_IMG ?= $(IMAGE_TAG_BASE)-catalog:v$(VERSION)
CATALOG_TEMPLATE ?= catalog/template.yaml
OPM_IMG ?= $(call image,opm)

# Which operator `make deploy` deploys: kubernetes (plain Kubernetes) or openshift.
VARIANT ?= kubernetes

# What builds and pushes images. This one is podman, docker or, where neither answers, bin/image.
CONTAINER_TOOL ?= hack/container-tool.sh
# What `make docker-buildx` builds for.
PLATFORMS ?= linux/amd64,linux/arm64,linux/ppc64le,linux/s390x

LOCALBIN ?= $(CURDIR)/bin
KUBECTL ?= $(LOCALBIN)/kubectl
KUBECTL_TOOL = $(filter $(LOCALBIN)/%,$(KUBECTL)) # built, unless it is the user's own

# The cluster that KUBECONFIG names is used as it is. Without KUBECONFIG, `make run` and `make e2e` start the local
# cluster when none runs, and stop it when they started it.
LOCALCLUSTER = $(LOCALBIN)/localcluster
WITH_CLUSTER = $(if $(KUBECONFIG),,$(LOCALCLUSTER) with --)

# Pure Go everywhere: no C compiler is needed, and tests run what is shipped.
export CGO_ENABLED ?= 0

SHELL = /usr/bin/env bash
.SHELLFLAGS = -euo pipefail -c
.DELETE_ON_ERROR:

.PHONY: all
all: build

##@ General
.PHONY: help

help: ## Show this.
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n\033[1m%s\033[0m\n", substr($$0, 5) } \
		/^[a-zA-Z0-9_-]+:.*## / { printf "  \033[36m%-15s\033[0m %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@printf '\nVariables, with their values now:\n'
	@printf '  %-15s %s\n' VERSION '$(VERSION)' IMG '$(IMG)' VARIANT '$(VARIANT)' BUNDLE_IMG '$(BUNDLE_IMG)' CATALOG_IMG '$(CATALOG_IMG)' CONTAINER_TOOL '$(CONTAINER_TOOL)' \
		KUBECONFIG '$(or $(KUBECONFIG),(not set: make run and make e2e make a local cluster))'

##@ Development
.PHONY: run build generate manifests bundle fmt vet lint

run: $(if $(KUBECONFIG),,root) build $(KUBECTL_TOOL) $(if $(KUBECONFIG),,cluster-tools) ## Run the operator from the working tree, with a sample, on KUBECONFIG or a local cluster. Ctrl-C ends it.
	go build -o $(LOCALBIN)/run ./hack/run
	@$(WITH_CLUSTER) $(LOCALBIN)/run --manager $(LOCALBIN)/manager --kubectl $(KUBECTL)

build: ## Build bin/manager.
	go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $(LOCALBIN)/manager .

generate: $(LOCALBIN)/controller-gen $(LOCALBIN)/crd-ref-docs ## Write the deepcopy functions of the API types, and docs/api.md.
	$(LOCALBIN)/controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...
	$(LOCALBIN)/crd-ref-docs --log-level=ERROR --config=hack/api-docs/config.yaml --templates-dir=hack/api-docs \
		--renderer=markdown --source-path=api/v1 --output-path=docs/api.md

manifests: $(LOCALBIN)/controller-gen ## Write the CRD and the operator's role from the markers in api and controllers.
	$(LOCALBIN)/controller-gen crd paths=./api/... output:crd:dir=config/crd/bases
	$(LOCALBIN)/controller-gen rbac:roleName=manager-role paths=./controllers/... output:rbac:dir=config/rbac

bundle: manifests ## Write the OLM bundle: bundle/ and bundle.Dockerfile, from config/manifests.
	@go build -o $(LOCALBIN)/bundle ./hack/bundle
	@$(LOCALBIN)/bundle --version='$(VERSION)' --previous-version='$(PREVIOUS_VERSION)' --image=manager='$(IMG)' \
		--channels='$(CHANNELS)' --default-channel='$(DEFAULT_CHANNEL)' --use-image-digests='$(USE_IMAGE_DIGESTS)'

fmt: $(LOCALBIN)/golangci-lint ## Format the code.
	$(LOCALBIN)/golangci-lint fmt

vet: ## Run go vet.
	go vet ./...

lint: $(LOCALBIN)/golangci-lint ## Run the linters of .golangci.yml.
	$(LOCALBIN)/golangci-lint run
	cd hack/tools/image && $(LOCALBIN)/golangci-lint run

##@ Checks
.PHONY: verify test e2e e2e-olm test-cluster test-images memcacheclient standins

# What `make generate`, `make manifests` and `make bundle` write.
GENERATED = api/v1/zz_generated.deepcopy.go docs/api.md config/crd/bases config/rbac/role.yaml bundle bundle.Dockerfile
generated_sums = { find $(GENERATED) -type f -exec cksum {} + 2>/dev/null || true; } | sort

verify: $(KUBECTL_TOOL) $(LOCALBIN)/golangci-lint ## Regenerate everything; fail if something was out of date, unformatted or doesn't render.
	@before=$$($(generated_sums)); \
	$(MAKE) --no-print-directory generate manifests bundle; \
	changed=$$(comm -3 <(echo "$$before") <($(generated_sums)) | awk '{ print $$NF }' | sort -u); \
	[[ -z $$changed ]] || { \
		git --no-pager diff -- $$changed; \
		echo "verify: out of date, and regenerated just now: look at them with git diff, then commit:" $$changed; exit 1; }
	go mod tidy -diff
	$(LOCALBIN)/golangci-lint fmt --diff
	@for dir in $$(dirname $$(grep -l '^kind: Kustomization' config/*/kustomization.yaml)); do \
		echo "$(notdir $(KUBECTL)) kustomize $$dir"; \
		warnings=$$($(KUBECTL) kustomize $$dir 2>&1 >/dev/null) && [[ -z $$warnings ]] || { \
			echo "verify: $$dir doesn't render cleanly: $$warnings"; exit 1; }; \
	done

# The API server and etcd that the tests run against, unless KUBEBUILDER_ASSETS names a folder with ready ones.
ENVTEST = $(addprefix $(LOCALBIN)/,etcd kube-apiserver)

test: vet $(if $(KUBEBUILDER_ASSETS),,$(ENVTEST)) ## Run all tests that need no cluster.
	KUBEBUILDER_ASSETS=$(or $(KUBEBUILDER_ASSETS),$(LOCALBIN)) go test $$(go list ./... | grep -v '/test/e2e')
	go -C test/kubernetes-1.31 test -count=1 ./...
	go -C hack/tools/image test ./...

MEMCACHECLIENT_IMG ?= example.com/memcacheclient:e2e
E2E = IMG=$(IMG) KUBECTL=$(KUBECTL) MEMCACHECLIENT_IMG=$(MEMCACHECLIENT_IMG) go test -v -count=1 -parallel=8 -timeout=20m ./test/e2e

e2e: $(if $(KUBECONFIG),,root) $(KUBECTL_TOOL) $(if $(KUBECONFIG),,cluster-tools build memcacheclient) ## Test the operator in its pod, with real memcached pods, on KUBECONFIG or a local cluster.
ifdef KUBECONFIG
	KUBECONFIG=$(abspath $(KUBECONFIG)) $(E2E)
else
	$(LOCALCLUSTER) with -- bash -euc '\
		$(LOCALCLUSTER) push $(IMG)=$(LOCALBIN)/manager $(MEMCACHECLIENT_IMG)=$(LOCALBIN)/e2e/memcacheclient; $(E2E)'
endif

# image NAME of config/images/images.env.
image = $(shell sed -n s/^$(1)=//p config/images/images.env)
PUSH_FOR_OLM = $(LOCALCLUSTER) push $(IMG)=$(LOCALBIN)/manager $(IMAGE_TAG_BASE):next=$(LOCALBIN)/e2e/next/manager \
	$(MEMCACHECLIENT_IMG)=$(LOCALBIN)/e2e/memcacheclient

e2e-olm: root olm-tools build memcacheclient ## Test the operator as OLM installs it from a catalog, with a real OLM on a local cluster.
	go build -trimpath -ldflags '-s -w -X main.version=next' -o $(LOCALBIN)/e2e/next/manager . # for an upgrade
	$(LOCALCLUSTER) with -- bash -euc '$(PUSH_FOR_OLM); $(INSTALL_OLM); OPM_IMG=$(OPM_IMG) KUBECTL=$(KUBECTL) \
		MEMCACHECLIENT_IMG=$(MEMCACHECLIENT_IMG) go test -v -count=1 -parallel=4 -timeout=40m ./test/e2e/olm'

test-cluster: root cluster-tools build ## Test the local cluster itself, and make run. Ends a local cluster that runs.
	go test -v -tags cluster -count=1 -timeout 20m -p 1 ./hack/localcluster ./hack/run

test-images: build $(LOCALBIN)/opm ## Test all images: built with buildah and, where nothing is run, without a container tool. Debian, root.
	go test -v -tags images -count=1 -timeout 20m ./test/images

standins:
	go build -trimpath -ldflags '-s -w' -o $(LOCALBIN)/standins/ ./test/standins/kube-rbac-proxy ./test/standins/service-ca

memcacheclient:
	go build -trimpath -ldflags '-s -w' -o $(LOCALBIN)/e2e/memcacheclient ./test/e2e/memcacheclient

##@ Local cluster (Linux, root)
.PHONY: root cluster-up cluster-olm cluster-down localcluster

# Said before half an hour of building, and not after.
root:
	@[[ $$(uname -s) == Linux && $$EUID == 0 ]] || { \
		echo 'A local cluster needs Linux and root. Be root, or set KUBECONFIG to a cluster of your own.'; exit 1; }

cluster-up: root cluster-tools ## Start a real one-node cluster on this machine and leave it running.
	$(LOCALCLUSTER) up

INSTALL_OLM = env LOCALBIN=$(LOCALBIN) hack/olm/install.sh

cluster-olm: root olm-tools ## Start it, if it doesn't run, and install the Operator Lifecycle Manager and OpenShift's stand-ins.
	$(LOCALCLUSTER) up
	$(LOCALCLUSTER) with -- $(INSTALL_OLM)

cluster-down: localcluster ## Stop it; nothing is left behind.
	$(LOCALCLUSTER) down

localcluster:
	go build -trimpath -ldflags '-s -w' -o $(LOCALBIN)/ ./hack/localcluster ./hack/localcluster/pause

##@ Deployment
.PHONY: install uninstall deploy undeploy deployment

OVERLAY_kubernetes = config/kubernetes
OVERLAY_openshift = config/default
OVERLAY = $(or $(OVERLAY_$(VARIANT)),$(error VARIANT is kubernetes or openshift, not "$(VARIANT)"))

install: $(KUBECTL_TOOL) ## Install the CRD.
	$(KUBECTL) apply --server-side -k config/crd

uninstall: $(KUBECTL_TOOL) ## Remove the CRD, and with it every Memcached and its pods.
	$(KUBECTL) delete --ignore-not-found -k config/crd

deploy: $(KUBECTL_TOOL) deployment ## Install the CRD and run IMG as the operator, in the form for VARIANT.
	$(KUBECTL) apply --server-side -k bin/deploy

undeploy: $(KUBECTL_TOOL) deployment ## Remove what `make deploy` installed: the operator, the CRD, every Memcached and its pods.
	$(KUBECTL) delete --ignore-not-found -k bin/deploy

# The overlay of VARIANT with IMG in it. Written to bin/, so that deploying changes no file under version control.
deployment:
	@mkdir -p bin/deploy
	@printf '%s\n' 'resources: [../../$(OVERLAY)]' 'patches:' '- patch: |-' \
		'    {apiVersion: apps/v1, kind: Deployment,' \
		'     metadata: {name: memcached-operator-controller-manager, namespace: memcached-operator-system},' \
		'     spec: {template: {spec: {containers: [{name: manager, image: "$(IMG)"}]}}}}' > bin/deploy/kustomization.yaml

##@ Images
.PHONY: docker-build docker-push docker-buildx bundle-build bundle-push bundle-run scorecard kubeconfig catalog catalog-build catalog-push

docker-build: ## Build IMG for this machine. Needs podman, docker or buildah.
	$(CONTAINER_TOOL) build --build-arg VERSION=$(VERSION) --tag $(IMG) .
docker-push: ## Push IMG.
	$(CONTAINER_TOOL) push $(IMG)
docker-buildx: ## Build IMG for all of PLATFORMS and push it.
	$(CONTAINER_TOOL) buildx build --build-arg VERSION=$(VERSION) --platform $(PLATFORMS) --tag $(IMG) --push .
bundle-build: ## Build BUNDLE_IMG from what `make bundle` wrote.
	$(CONTAINER_TOOL) build --file bundle.Dockerfile --tag $(BUNDLE_IMG) .
bundle-push: ## Push BUNDLE_IMG.
	$(CONTAINER_TOOL) push $(BUNDLE_IMG)
bundle-run: kubeconfig $(LOCALBIN)/operator-sdk ## Install the bundle BUNDLE_IMG, which must be pushed, by OLM on KUBECONFIG.
	$(LOCALBIN)/operator-sdk run bundle $(OPERATOR_SDK_FLAGS) $(BUNDLE_IMG)
scorecard: kubeconfig $(LOCALBIN)/operator-sdk ## Run operator-sdk's scorecard on bundle/, on KUBECONFIG.
	$(LOCALBIN)/operator-sdk scorecard --pod-security=restricted --wait-time=2m $(OPERATOR_SDK_FLAGS) bundle
kubeconfig:
	@[[ -n $${KUBECONFIG:-} || -e ~/.kube/config ]] || { \
		echo 'This needs a cluster: set KUBECONFIG. For the local one: make cluster-olm, and then what it prints.'; exit 1; }
catalog: $(LOCALBIN)/opm ## Write bin/configs and bin/cache from catalog/template.yaml and the images of bundles, which must be pushed.
	@hack/catalog.sh $(LOCALBIN)/opm '$(CATALOG_TEMPLATE)' '$(VERSION)' '$(BUNDLE_IMG)' $(OPM_FLAGS)
catalog-build: catalog ## Build CATALOG_IMG.
	$(CONTAINER_TOOL) build --file catalog/catalog.Dockerfile --build-arg OPM_IMAGE=$(OPM_IMG) --tag $(CATALOG_IMG) .
catalog-push: ## Push CATALOG_IMG.
	$(CONTAINER_TOOL) push $(CATALOG_IMG)

##@ Tools
.PHONY: cluster-tools olm-tools tools clean

include hack/tools/tools.mk

# What the local cluster consists of, and OLM on it.
cluster-tools: localcluster $(foreach module,kubernetes etcd containerd coredns,$(call tool_binaries,$(module)))
olm-tools: cluster-tools standins $(foreach module,olm opm helm image operator-sdk,$(call tool_binaries,$(module)))

tools: cluster-tools $(foreach module,$(TOOL_MODULES),$(call tool_binaries,$(module))) ## Build all tools now: about 50 minutes on 2 cores, cached afterwards.

clean: ## Remove bin/. Go's build cache stays, so the next build is quick.
	rm -rf bin
