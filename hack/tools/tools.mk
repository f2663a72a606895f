# How the tools are built that hack/tools/*/go.mod pin. The Makefile includes this.

# Each command that a `tool` line of hack/tools/*/go.mod names can be made as bin/NAME. It is built when it is missing,
# and again when its module changes.
tool_packages = $(shell awk '/^tool .*\// { print $$2 } /^\t[^ ]+$$/ { print $$1 }' hack/tools/$(1)/go.mod)
tool_binaries = $(addprefix $(LOCALBIN)/,$(notdir $(call tool_packages,$(1))))

# Minutes that a first build takes on 2 cores, where it is long enough to wonder. kube-apiserver pays for most of what
# the other Kubernetes commands share.
MINUTES_catalog = 4
MINUTES_containerd = 4
MINUTES_coredns = 4
MINUTES_etcd = 2
MINUTES_golangci-lint = 4
MINUTES_kube-apiserver = 8
MINUTES_kube-controller-manager = 3
MINUTES_kubectl = 2
MINUTES_kubelet = 2
MINUTES_operator-sdk = 8
MINUTES_opm = 6

# Without them they need a C compiler.
TAGS_olm = containers_image_openpgp,exclude_graphdriver_btrfs
TAGS_operator-sdk = $(TAGS_olm)
TAGS_opm = $(TAGS_olm)
# A Kubernetes command knows its version only when the linker is told.
kubernetes_version = $(shell awk '$$1 == "k8s.io/kubernetes" { print $$2 }' hack/tools/kubernetes/go.mod)
LDFLAGS_kubernetes = -X k8s.io/component-base/version.gitVersion=$(kubernetes_version)

define tool_rule
$(LOCALBIN)/$(notdir $(2)): $(addprefix hack/tools/$(1)/,go.mod go.sum) $(wildcard hack/tools/$(1)/*.go)
	@echo 'Building $$(@F) of hack/tools/$(1): about $$(or $$(MINUTES_$$(@F)),1) min the first time, cached afterwards'
	@SECONDS=0; go -C hack/tools/$(1) build -trimpath -tags='$$(TAGS_$(1))' -ldflags='-s -w $$(LDFLAGS_$(1))' -o $$@ $(2); \
	touch $$@; echo "Built $$(@F) in $$$$SECONDS s"
endef
TOOL_MODULES = $(notdir $(patsubst %/go.mod,%,$(wildcard hack/tools/*/go.mod)))
$(foreach module,$(TOOL_MODULES),$(foreach package,$(call tool_packages,$(module)),$(eval $(call tool_rule,$(module),$(package)))))
bin/%: $(LOCALBIN)/% ; @:
