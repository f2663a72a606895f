// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Package debian installs what the local cluster and tests use of the machine.
package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Requirement is something that is used of the machine, and the package that has it.
type Requirement struct {
	Package string
	// AnyOf are commands, or the paths of files. One of them is enough.
	AnyOf []string
}

// Missing are the packages of which nothing is there.
func Missing(requirements []Requirement) []string {
	var missing []string
	for _, required := range requirements {
		if !slices.ContainsFunc(required.AnyOf, installed) {
			missing = append(missing, required.Package)
		}
	}
	return missing
}

func installed(command string) bool {
	_, err := exec.LookPath(command)
	return err == nil
}

// Install installs packages where it knows how to.
func Install(ctx context.Context, packages []string) error {
	if _, err := os.Stat("/etc/debian_version"); err != nil {
		return fmt.Errorf("this machine has none of what these Debian packages hold: %s: install it", strings.Join(packages, ", "))
	}
	if err := aptGet(ctx, "update"); err != nil {
		return err
	}
	return withoutServices(func() error {
		return aptGet(ctx, append([]string{"install", "--yes", "--no-install-recommends"}, packages...)...)
	})
}

// servicePolicy is what Debian's packages ask before they start a service.
const servicePolicy = "/usr/sbin/policy-rc.d"

// withoutServices keeps what is installed from starting: it is memcached's binary that is wanted, not a memcached on this
// machine. A policy that the machine has already is left alone.
func withoutServices(install func() error) error {
	policy, err := os.OpenFile(servicePolicy, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return install()
	}
	if err != nil {
		return fmt.Errorf("forbidding services to start: %w", err)
	}
	_, err = policy.WriteString("#!/bin/sh\nexit 101 # forbidden\n")
	if err = errors.Join(err, policy.Close()); err != nil {
		return errors.Join(fmt.Errorf("forbidding services to start: %w", err), os.Remove(servicePolicy))
	}
	return errors.Join(install(), os.Remove(servicePolicy))
}

func aptGet(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, "apt-get", append([]string{"--quiet=2"}, args...)...)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("running apt-get %s: %w\n%s", args[0], err, bytes.TrimSpace(output))
	}
	return nil
}
