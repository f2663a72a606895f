#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Memcached Operator Authors
#
# Makes the local cluster one where OLM can install the bundle. It installs the Operator Lifecycle Manager by its own chart,
# and pushes the images that OLM and operator-sdk take from public registries: builds of the same commands, of the versions
# that hack/tools pins, and Debian's busybox where an image only has to have a few shell tools. What the bundle expects of
# OpenShift gets the stand-ins of test/standins. Run it by `make cluster-olm`, which builds all that.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

: "${LOCALCLUSTER_REGISTRY:?is not set: run this by make cluster-olm}" "${LOCALCLUSTER_CA:?}" "${LOCALBIN:?}"

# version MODULE TOOLS: the version that hack/tools/TOOLS has of MODULE, and its folder.
version() { go -C "hack/tools/$2" list -m -f '{{ .Version }}' "$1"; }
folder() { go -C "hack/tools/$2" list -m -f '{{ .Dir }}' "$1"; }

olm_module=github.com/operator-framework/operator-lifecycle-manager
olm_image=quay.io/operator-framework/olm:$(version $olm_module olm)
opm_image=quay.io/operator-framework/opm:$(version github.com/operator-framework/operator-registry opm)
scorecard_image=quay.io/operator-framework/scorecard-test:$(version github.com/operator-framework/operator-sdk operator-sdk)

# push DOCKERFILE IMAGE: builds of what is in the folder of the tools, and pushes under the name that pods use.
push() {
  "$LOCALBIN/image" build --file "hack/olm/$1.Dockerfile" --tag "$LOCALCLUSTER_REGISTRY/$2" "$LOCALBIN"
  SSL_CERT_FILE=$LOCALCLUSTER_CA "$LOCALBIN/image" push "$LOCALCLUSTER_REGISTRY/$2"
}

cp /bin/busybox "$LOCALBIN/busybox"
mkdir -p "$LOCALBIN/rootfs/tmp" "$LOCALBIN/rootfs/configs"
chmod 1777 "$LOCALBIN/rootfs/tmp"
push olm "$olm_image"
push opm "$opm_image"
push scorecard-test "$scorecard_image"
push busybox registry.access.redhat.com/ubi9/ubi:9.8 # what `operator-sdk run bundle` unpacks a catalog with

"$LOCALBIN/localcluster" push "$(sed -n s/^kube-rbac-proxy=//p config/images/images.env)=$LOCALBIN/standins/kube-rbac-proxy" \
  "example.com/service-ca:stand-in=$LOCALBIN/standins/service-ca"
"$LOCALBIN/kubectl" apply -f test/standins/service-ca/service-ca.yaml

chart=$(folder $olm_module olm)/deploy
"$LOCALBIN/helm" upgrade --install olm "$chart/chart" --namespace kube-system --wait --timeout 5m \
  --values "$chart/upstream/values.yaml" --values hack/olm/values.yaml \
  --set "olm.image.ref=$olm_image,catalog.image.ref=$olm_image,package.image.ref=$olm_image" \
  --set "catalog.opmImageArgs=--opmImage=$opm_image" >"$LOCALBIN/helm.log" || { cat "$LOCALBIN/helm.log"; exit 1; }
"$LOCALBIN/kubectl" wait --namespace olm --for=jsonpath='{.status.phase}'=Succeeded csv/packageserver --timeout=5m
echo "OLM $(version $olm_module olm) is installed"
