// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package framework

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Root is the folder of the repository.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}

// Make runs a target of the Makefile. The error has what it printed.
func Make(args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "make", append([]string{"--no-print-directory", "-C", Root()}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECTL="+KubectlBinary())
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return nil
}

// KubectlBinary is the kubectl that KUBECTL names, or the one in bin/.
func KubectlBinary() string {
	if binary := os.Getenv("KUBECTL"); binary != "" {
		return binary
	}
	return filepath.Join(Root(), "bin", "kubectl")
}

// TryKubectl returns what kubectl printed. The error has what it complained about.
func TryKubectl(stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, KubectlBinary(), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// Kubectl must succeed. It works in the namespace unless that is empty.
func Kubectl(t *testing.T, namespace string, args ...string) string {
	t.Helper()
	if namespace != "" {
		args = append([]string{"--namespace", namespace}, args...)
	}
	output, err := TryKubectl("", args...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// Apply does what a user does with a file.
func Apply(t *testing.T, namespace, manifest string) {
	t.Helper()
	if _, err := TryKubectl(manifest, "--namespace", namespace, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// Memcached is the manifest of a Memcached, with the spec in YAML.
func Memcached(name, spec string) string {
	return fmt.Sprintf("{apiVersion: cache.example.com/v1, kind: Memcached, metadata: {name: %s}, spec: %s}\n---\n", name, spec)
}

// InClient runs a command of memcacheclient in the cluster and returns the lines that it printed.
func InClient(args ...string) ([]string, error) {
	output, err := TryKubectl("", append([]string{"--namespace", ClientNamespace, "exec", "client", "--", "/memcacheclient"}, args...)...)
	return strings.FieldsFunc(output, func(r rune) bool { return r == '\n' }), err
}

// Outputs are those of several kubectl commands, whatever becomes of them.
func Outputs(commands ...[]string) string {
	var all strings.Builder
	for _, args := range commands {
		output, err := TryKubectl("", args...)
		fmt.Fprintf(&all, "$ kubectl %s\n%s\n", strings.Join(args, " "), output)
		if err != nil {
			fmt.Fprintln(&all, err)
		}
	}
	return all.String()
}
