// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// What the node shares with the machine in spite of its namespaces: control groups and the kernel's sysctls.

// kubeletSysctls are set by the kubelet when it starts, and hold for the whole machine.
var kubeletSysctls = []string{
	"kernel/keys/root_maxbytes",
	"kernel/keys/root_maxkeys",
	"kernel/panic",
	"kernel/panic_on_oops",
	"vm/overcommit_memory",
	"vm/panic_on_oom",
}

const sysctlRecord = stateDir + "/sysctls.json"

func sysctlPath(name string) string {
	return filepath.Join("/proc/sys", name)
}

// saveSysctls notes what restoreSysctls sets again.
func saveSysctls() error {
	values := map[string]string{}
	for _, name := range kubeletSysctls {
		value, err := os.ReadFile(sysctlPath(name))
		if err != nil {
			return fmt.Errorf("reading a sysctl: %w", err)
		}
		values[name] = strings.TrimSpace(string(value))
	}
	content, err := json.Marshal(values)
	if err != nil {
		return fmt.Errorf("encoding the sysctls: %w", err)
	}
	if err := os.WriteFile(sysctlRecord, content, 0o600); err != nil {
		return fmt.Errorf("noting the sysctls: %w", err)
	}
	return nil
}

func restoreSysctls() error {
	content, err := os.ReadFile(sysctlRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the noted sysctls: %w", err)
	}
	var values map[string]string
	if json.Unmarshal(content, &values) != nil {
		// Cut short by a crash of the machine, which has its own values again since.
		return nil
	}
	for name, value := range values {
		if err := os.WriteFile(sysctlPath(name), []byte(value), 0); err != nil {
			return fmt.Errorf("restoring a sysctl: %w", err)
		}
	}
	return nil
}

// hierarchy is a mounted tree of control groups: one per controller in version 1, one for all in version 2.
type hierarchy struct {
	mountPoint string
	unified    bool
	options    []string
}

// hierarchies reads them from the content of /proc/self/mountinfo.
func hierarchies(mountinfo string) []hierarchy {
	var found []hierarchy
	for line := range strings.Lines(mountinfo) {
		mount, source, _ := strings.Cut(strings.TrimSpace(line), " - ")
		fields, types := strings.Fields(mount), strings.Fields(source)
		if len(fields) < 5 || len(types) < 3 {
			continue
		}
		switch types[0] {
		case "cgroup":
			found = append(found, hierarchy{mountPoint: fields[4], options: strings.Split(types[2], ",")})
		case "cgroup2":
			found = append(found, hierarchy{mountPoint: fields[4], unified: true})
		}
	}
	return found
}

func machineHierarchies() ([]hierarchy, error) {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("listing the mounted control groups: %w", err)
	}
	return hierarchies(string(mountinfo)), nil
}

// createCgroups makes the groups in which the kubelet then makes those of the pods.
func createCgroups() error {
	all, err := machineHierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		if h.unified {
			if err := delegateControllers(h.mountPoint); err != nil {
				return err
			}
		}
		group := filepath.Join(h.mountPoint, cgroupName)
		if err := os.Mkdir(group, 0o755); err != nil {
			return fmt.Errorf("making a control group: %w", err)
		}
		// In version 1, a new group has no processors or memory nodes until it is given some.
		if slices.Contains(h.options, "cpuset") {
			for _, setting := range []string{"cpuset.cpus", "cpuset.mems"} {
				if err := copySetting(h.mountPoint, group, setting); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// delegateControllers makes version 2's controllers available to groups below the root. There are none where version 1
// is mounted beside it.
func delegateControllers(root string) error {
	controllers, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("listing the control group controllers: %w", err)
	}
	for controller := range strings.FieldsSeq(string(controllers)) {
		if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+"+controller), 0); err != nil {
			return fmt.Errorf("enabling the %s controller: %w", controller, err)
		}
	}
	return nil
}

func copySetting(from, to, setting string) error {
	value, err := os.ReadFile(filepath.Join(from, setting))
	if err != nil {
		return fmt.Errorf("reading a control group's setting: %w", err)
	}
	if err := os.WriteFile(filepath.Join(to, setting), value, 0); err != nil {
		return fmt.Errorf("setting up a control group: %w", err)
	}
	return nil
}

func removeCgroups() error {
	all, err := machineHierarchies()
	if err != nil {
		return err
	}
	var errs []error
	for _, h := range all {
		errs = append(errs, removeCgroup(filepath.Join(h.mountPoint, cgroupName)))
	}
	return errors.Join(errs...)
}

// removeCgroup removes a group and those in it. Their files can't be removed and needn't be.
func removeCgroup(root string) error {
	var groups []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			groups = append(groups, path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("listing the control groups in %s: %w", root, err)
	}
	for _, group := range slices.Backward(groups) {
		if err := removeEmptyCgroup(group); err != nil {
			return err
		}
	}
	return nil
}

// removeEmptyCgroup allows for the moment that a killed process still counts.
func removeEmptyCgroup(group string) error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		err := os.Remove(group)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("removing a control group: %w", err)
		}
	}
}
