// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build images

package images

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/example-inc/memcached-operator/hack/debian"
)

// Where the stand-in for go-toolset finds what is this machine's.
const (
	mountedGo      = "/usr/local/go"
	mountedModules = "/modules"
	mountedCache   = "/gocache"
)

// requirements are what the images are built with, and what the stand-ins are made of.
var requirements = []debian.Requirement{
	{Package: "buildah", AnyOf: []string{"buildah"}},
	{Package: "busybox-static", AnyOf: []string{"/bin/busybox"}},
	{Package: "mount", AnyOf: []string{"mount"}},
}

// overGoCache runs a command with this machine's build cache mounted for the user of go-toolset to write to. What is
// written goes to memory. The mounts are in a namespace of their own, so they end with the command.
const overGoCache = `
mount -t tmpfs tmpfs "$1"
mkdir "$1"/upper "$1"/work "$1"/cache
mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" "$1"/cache
chown 1001 "$1"/cache "$1"/cache/??
shift 2
exec "$@"`

// buildah is a buildah that needs no network and no container runtime. Its images go with the test.
type buildah struct {
	environment []string
	mounts      string
}

// newBuildah makes one for which registry.access.redhat.com is the registry on this machine.
func newBuildah(t *testing.T, registry string) buildah {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("buildah builds without a container runtime, and for that needs root: be root")
	}
	if missing := debian.Missing(requirements); len(missing) > 0 {
		t.Log("installing", missing)
		must(t, debian.Install(t.Context(), missing))
	}
	folder := t.TempDir()
	mounts := filepath.Join(folder, "mounts")
	must(t, os.Mkdir(mounts, 0o755))
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	return buildah{mounts: mounts, environment: []string{
		"BUILDAH_ISOLATION=chroot",
		"CONTAINERS_CONF=" + write("containers.conf", fmt.Sprintf("[containers]\nvolumes = [%q, %q, %q]\n",
			goEnv(t, "GOROOT")+":"+mountedGo+":ro",
			filepath.Join(goEnv(t, "GOMODCACHE"), "cache", "download")+":"+mountedModules+":ro",
			filepath.Join(mounts, "cache")+":"+mountedCache)),
		"CONTAINERS_STORAGE_CONF=" + write("storage.conf", fmt.Sprintf("[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrunroot = %q\n",
			filepath.Join(folder, "images"), filepath.Join(folder, "run"))),
		"CONTAINERS_REGISTRIES_CONF=" + write("registries.conf", fmt.Sprintf(
			"[[registry]]\nlocation = %q\ninsecure = true\n[[registry]]\nprefix = \"registry.access.redhat.com\"\nlocation = %[1]q\ninsecure = true\n",
			registry)),
	}}
}

// make runs targets of the Makefile with this buildah as the container tool.
func (b buildah) make(t *testing.T, args ...string) {
	t.Helper()
	command := makefile(t, b.environment, append(args, "CONTAINER_TOOL=buildah")...)
	bash, err := exec.LookPath("bash")
	must(t, err)
	command.Args = append([]string{"bash", "-euc", overGoCache, "bash", b.mounts, goEnv(t, "GOCACHE")}, command.Args...)
	command.Path = bash
	command.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	succeed(t, command)
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	return strings.TrimSpace(succeed(t, exec.CommandContext(t.Context(), "go", "env", name)))
}
