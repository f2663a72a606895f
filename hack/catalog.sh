#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Memcached Operator Authors
#
# Behind `make catalog`: hack/catalog.sh OPM TEMPLATE VERSION BUNDLE_IMG [OPM_FLAG…]
#
# Writes what the catalog's image is made of: bin/configs, which is TEMPLATE with what opm reads in the images
# of the bundles, and bin/cache, which opm serves it from. The image of VERSION's bundle is BUNDLE_IMG.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
opm=$1 template=$2 version=$3 bundle=$4
shift 4

# Before the last catalog goes.
[[ -f $template ]] || {
  echo "catalog: CATALOG_TEMPLATE is \"$template\", and there is no such file: give one such as catalog/template.yaml" >&2
  exit 1
}

# opm wants the policy of the containers tools. Where none of these is installed, it gets the one that they come with.
if [[ -z ${CONTAINERS_POLICY_JSON:-} ]]; then
  for folder in "${XDG_CONFIG_HOME:-$HOME/.config}" /etc /usr/share; do
    [[ -e $folder/containers/policy.json ]] && break
  done
  [[ -e $folder/containers/policy.json ]] || export CONTAINERS_POLICY_JSON=hack/tools/opm/policy.json
fi

rm -rf bin/configs bin/cache
mkdir -p bin/configs/memcached-operator
sed "s|image: .*:v$version\$|image: $bundle|" "$template" |
  "$opm" alpha render-template basic "$@" --migrate-level=bundle-object-to-csv-metadata -o yaml \
    > bin/configs/memcached-operator/catalog.yaml
"$opm" validate bin/configs
# Without its profiler, which would take a port, and without the file in /dev that it keeps for Kubernetes.
"$opm" serve bin/configs --cache-dir=bin/cache --cache-only --pprof-addr= --termination-log=/dev/null
# Pods run as any user, but of group 0; and opm opens its cache for writing.
chmod -R g=u bin/configs bin/cache
