// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Package pin is there for its module, which says of which version the Prometheus operator's CustomResourceDefinitions are
// that tests read from Go's module cache. A module of its own, since nothing of the operator needs that code.
package pin

import _ "github.com/prometheus-operator/prometheus-operator/pkg/versionutil" // its smallest package
