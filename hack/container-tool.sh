#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Memcached Operator Authors
#
# The Makefile's CONTAINER_TOOL, unless that is set: podman or docker, whichever answers, or else bin/image, which is built
# when it is needed. Takes their command line.
set -euo pipefail

for tool in podman docker; do
  if "$tool" info >/dev/null 2>&1; then
    exec "$tool" "$@"
  fi
done
root=$(dirname "${BASH_SOURCE[0]}")/..
MAKEFLAGS='' make --silent --directory="$root" bin/image
exec "$root/bin/image" "$@"
