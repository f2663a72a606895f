// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// requirement is something that the node uses of the machine, and the Debian package that has it.
type requirement struct {
	pkg string
	// One of these is enough: a command, or the path of a file.
	commands []string
}

var requirements = []requirement{
	{"containernetworking-plugins", []string{"/usr/lib/cni/ptp", "/opt/cni/bin/ptp"}},
	{"iproute2", []string{"ip"}},
	{"iptables", []string{"iptables"}},
	{"memcached", []string{"memcached"}},
	{"mount", []string{"mount"}},
	{"runc", []string{"runc"}},
}

func missingPackages() []string {
	var missing []string
	for _, required := range requirements {
		if !slices.ContainsFunc(required.commands, installed) {
			missing = append(missing, required.pkg)
		}
	}
	return missing
}

func installed(command string) bool {
	_, err := exec.LookPath(command)
	return err == nil
}

// installPackages installs what is missing where it knows how to.
func installPackages(ctx context.Context) error {
	missing := missingPackages()
	if len(missing) == 0 {
		return nil
	}
	if _, err := os.Stat("/etc/debian_version"); err != nil {
		return fmt.Errorf("this machine has none of what these Debian packages hold: %s: install it", strings.Join(missing, ", "))
	}
	progress("Installing %s", strings.Join(missing, ", "))
	if err := aptGet(ctx, "update"); err != nil {
		return err
	}
	return withoutServices(func() error {
		return aptGet(ctx, append([]string{"install", "--yes", "--no-install-recommends"}, missing...)...)
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
		return fmt.Errorf("running apt-get %s: %w\n%s", args[0], err, tail(output, logTailLines))
	}
	return nil
}
