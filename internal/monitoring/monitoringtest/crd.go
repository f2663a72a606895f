// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Package monitoringtest gives tests the Prometheus operator's kind.
package monitoringtest

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// ServiceMonitorCRD is the file of the kind's CustomResourceDefinition, in Go's module cache. Its version is the one that
// test/prometheus-operator pins.
func ServiceMonitorCRD(t *testing.T) string {
	t.Helper()
	const name = "github.com/prometheus-operator/prometheus-operator"
	_, here, _, _ := runtime.Caller(0)
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", name)
	download.Dir = filepath.Join(filepath.Dir(here), "..", "..", "..", "test", "prometheus-operator")
	output, err := download.Output()
	var module struct{ Dir, Error string }
	if err = errors.Join(err, json.Unmarshal(output, &module)); err != nil {
		t.Fatalf("downloading %s: %v: %s", name, err, module.Error)
	}
	return filepath.Join(module.Dir, "example", "prometheus-operator-crd", "monitoring.coreos.com_servicemonitors.yaml")
}
