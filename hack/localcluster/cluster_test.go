// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux && cluster

// These tests start and kill the machine's one local cluster, so they run only when asked for, as root:
//
//	go test -tags cluster -count 1 ./hack/localcluster
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var binFlag = flag.String("bin", "../../bin", "the `folder` with localcluster and its tools")

// TestClusterLivesAndLeavesNothing covers the commands as a person uses them, and every accident that `up` and `down`
// promise to cope with. What pods do in the cluster is left to test/e2e.
func TestClusterLivesAndLeavesNothing(t *testing.T) {
	mustRun(t, "down")
	before := snapshot(t)

	t.Run("up starts a cluster in which a pod runs", func(t *testing.T) {
		mustRun(t, "up")
		mustRun(t, "status")
		answersFromAPod(t)
	})
	t.Run("up leaves a healthy cluster alone", func(t *testing.T) {
		mustRun(t, "up")
		node := runningNode(t)
		mustRun(t, "up")
		if diff := cmp.Diff(node, runningNode(t), cmp.AllowUnexported(identity{})); diff != "" {
			t.Errorf("the node was replaced (-before +after):\n%s", diff)
		}
	})
	t.Run("with uses a running cluster and leaves it running", func(t *testing.T) {
		mustRun(t, "up")
		node := runningNode(t)
		mustRun(t, "with", "--", "true")
		if diff := cmp.Diff(node, runningNode(t), cmp.AllowUnexported(identity{})); diff != "" {
			t.Errorf("the node was replaced (-before +after):\n%s", diff)
		}
	})
	for _, name := range components() {
		t.Run("up repairs a cluster whose "+name+" was killed", func(t *testing.T) {
			mustRun(t, "up")
			kill(t, processesOf(t, runningNode(t), name))
			if err := localcluster(t, "status").Run(); err == nil {
				t.Error("status sees nothing wrong")
			}
			mustRun(t, "up")
			mustRun(t, "status")
		})
	}
	t.Run("up starts anew when the whole node was killed", func(t *testing.T) {
		mustRun(t, "up")
		kill(t, []int{runningNode(t).pid})
		mustRun(t, "up")
		answersFromAPod(t)
	})
	t.Run("down copes with all components and shims killed", func(t *testing.T) {
		mustRun(t, "up")
		var all []int
		for _, name := range append(components(), "containerd-shim-runc-v2") {
			all = append(all, processesOf(t, runningNode(t), name)...)
		}
		kill(t, all)
		mustRun(t, "down")
		leavesNothing(t, before)
	})
	t.Run("down has nothing to do the second time", func(t *testing.T) {
		mustRun(t, "down")
		leavesNothing(t, before)
	})
	mustRun(t, "down")
	t.Run("with starts a cluster, passes on the exit code and stops the cluster", func(t *testing.T) {
		err := localcluster(t, "with", "--", "sh", "-c",
			`test -s "$KUBECONFIG" && test -s "$LOCALCLUSTER_AUDIT_LOG" && test -n "$LOCALCLUSTER_REGISTRY" && test -s "$LOCALCLUSTER_CA" && exit 7`).Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 7 {
			t.Errorf("got %v, want the command's exit code 7", err)
		}
		leavesNothing(t, before)
		if _, err := os.Stat(filepath.Join(*binFlag, "localcluster-logs", "kube-apiserver.log")); err != nil {
			t.Errorf("the logs of a failed run weren't kept: %v", err)
		}
	})
	t.Run("with stops the cluster when it is interrupted while starting it", func(t *testing.T) {
		interrupt(t, localcluster(t, "with", "--", "sleep", "600"), syscall.SIGINT, "kube-apiserver")
		leavesNothing(t, before)
	})
	t.Run("with stops the cluster when it is terminated while the command runs", func(t *testing.T) {
		interrupt(t, localcluster(t, "with", "--", "sh", "-c", "echo the command runs; exec sleep 600"), syscall.SIGTERM, "the command runs")
		leavesNothing(t, before)
	})
}

func localcluster(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	bin, err := filepath.Abs(*binFlag)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), filepath.Join(bin, "localcluster"), args...)
	command.Stdout, command.Stderr = t.Output(), t.Output()
	return command
}

func mustRun(t *testing.T, args ...string) {
	t.Helper()
	begin := time.Now()
	if err := localcluster(t, args...).Run(); err != nil {
		t.Fatalf("localcluster %s: %v", strings.Join(args, " "), err)
	}
	t.Logf("localcluster %s took %.1fs", strings.Join(args, " "), time.Since(begin).Seconds())
}

// interrupt starts a command, signals it once it has written a text, and waits for it.
func interrupt(t *testing.T, command *exec.Cmd, signal os.Signal, text string) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = writer, writer
	if err := errors.Join(command.Start(), writer.Close()); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		t.Log(lines.Text())
		if strings.Contains(lines.Text(), text) {
			if err := command.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := command.Wait(); err == nil {
		t.Error("a command that was interrupted succeeded")
	}
}

func components() []string {
	var names []string
	for _, part := range allComponents() {
		if part.name != clusterDNS.name {
			names = append(names, part.name)
		}
	}
	return names
}

func runningNode(t *testing.T) identity {
	t.Helper()
	node, running, err := findNode()
	if err != nil || !running {
		t.Fatalf("the node doesn't run: %v", err)
	}
	return node
}

// processesOf finds the processes of a component of the node, and of no other: by name, in the node's namespace.
func processesOf(t *testing.T, node identity, name string) []int {
	t.Helper()
	namespace := processNamespace(t, node.pid)
	var found []int
	for _, process := range processes(t) {
		if process.namespace == namespace && filepath.Base(process.command) == name {
			found = append(found, process.pid)
		}
	}
	if len(found) == 0 {
		t.Fatalf("there is no %s", name)
	}
	return found
}

// processNamespace is that of a process and, unless it makes another, of what it starts.
func processNamespace(t *testing.T, pid int) string {
	t.Helper()
	namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err != nil {
		t.Fatal(err)
	}
	return namespace
}

func kill(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

type processInfo struct {
	pid                int
	namespace, command string
}

func processes(t *testing.T) []processInfo {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var all []processInfo
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// One that has ended may wait long for the machine's process 1 to notice.
		if _, err := identify(pid); err != nil {
			continue
		}
		// A process that is gone by now has neither.
		namespace, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		command, _, _ := bytes.Cut(line, []byte{0})
		all = append(all, processInfo{pid, namespace, string(command)})
	}
	return all
}

// answersFromAPod runs memcached in a pod and talks to it from the machine.
func answersFromAPod(t *testing.T) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", adminKubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "memcached", Namespace: metav1.NamespaceDefault},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(1)),
			Containers:                    []corev1.Container{{Name: "memcached", Image: memcachedImages[0]}},
		},
	}
	if err := cluster.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		if err := cluster.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		connection, err := net.DialTimeout("tcp", net.JoinHostPort(pod.Status.PodIP, "11211"), time.Second)
		if err != nil {
			return err
		}
		if _, err = connection.Write([]byte("version\r\n")); err != nil {
			return err
		}
		answer, err := bufio.NewReader(connection).ReadString('\n')
		if err == nil && !strings.HasPrefix(answer, "VERSION ") {
			err = fmt.Errorf("memcached answered %q", answer)
		}
		return errors.Join(err, connection.Close())
	})
}

func eventually(t *testing.T, check func(context.Context) error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if err = check(t.Context()); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// machineState is what a cluster could leave behind.
type machineState struct {
	Processes, Mounts, Interfaces, Routes, FirewallRules, Cgroups, Files []string
	Sysctls                                                              map[string]string
}

func leavesNothing(t *testing.T, before machineState) {
	t.Helper()
	// On a fresh machine there were no rules because there was no iptables.
	if diff := cmp.Diff(before, snapshot(t), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the machine isn't as it was (-before +after):\n%s", diff)
	}
}

func snapshot(t *testing.T) machineState {
	t.Helper()
	state := machineState{
		Mounts:        lines(t, "cat", "/proc/self/mountinfo"),
		Routes:        lines(t, "ip", "route", "show", "table", "all"),
		FirewallRules: firewallRules(t),
		Sysctls:       map[string]string{},
	}

	own := processNamespace(t, os.Getpid())
	for _, process := range processes(t) {
		if process.namespace != "" && process.namespace != own {
			state.Processes = append(state.Processes, process.command)
		}
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range interfaces {
		state.Interfaces = append(state.Interfaces, each.Name)
	}
	all, err := machineHierarchies()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range all {
		for _, name := range []string{cgroupName, "kubepods", "system.slice/runc"} {
			state.Cgroups = append(state.Cgroups, existing(filepath.Join(h.mountPoint, name))...)
		}
	}
	for _, path := range []string{
		stateDir, "/etc/cni/net.d", "/run/containerd", "/run/netns", "/run/runc", "/run/xtables.lock", "/var/lib/cni",
		"/var/lib/containerd", "/var/lib/kubelet", "/var/log/containers", "/var/log/pods",
	} {
		state.Files = append(state.Files, existing(path)...)
	}
	for _, name := range append([]string{"net/ipv4/ip_forward"}, kubeletSysctls...) {
		value, err := os.ReadFile(sysctlPath(name))
		if err != nil {
			t.Fatal(err)
		}
		state.Sysctls[name] = strings.TrimSpace(string(value))
	}
	return state
}

// firewallRules are none where there is no iptables yet: `up` installs it.
func firewallRules(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("iptables-save"); err != nil {
		return nil
	}
	// Comments have the time in them, and chains their counters.
	return slices.DeleteFunc(lines(t, "iptables-save"), func(line string) bool {
		return !strings.HasPrefix(line, "-A")
	})
}

func lines(t *testing.T, name string, args ...string) []string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return strings.Split(strings.TrimSpace(string(output)), "\n")
}

func existing(path string) []string {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return []string{path}
}
