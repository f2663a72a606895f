// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestConfigFilesRender(t *testing.T) {
	for _, path := range append([]string{dnsManifest}, configFiles...) {
		t.Run(path, func(t *testing.T) {
			content, err := renderConfig(path)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(content, []byte("{{")) {
				t.Errorf("not filled in:\n%s", content)
			}
			switch filepath.Ext(path) {
			case ".yaml":
				for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
					var parsed map[string]any
					if err := yaml.UnmarshalStrict(document, &parsed); err != nil {
						t.Errorf("not YAML: %v", err)
					}
				}
			case ".conflist":
				if !json.Valid(content) {
					t.Errorf("not JSON:\n%s", content)
				}
			}
		})
	}
}

func TestAddressesAreInTheClustersBlock(t *testing.T) {
	for _, prefix := range []string{podCIDR, serviceCIDR, nodeAddress + linkBits, apiServiceAddress + "/32", dnsAddress + "/32"} {
		if !overlaps(prefix, clusterCIDR) {
			t.Errorf("%s is outside %s, the one block that the machine has a route to", prefix, clusterCIDR)
		}
	}
	if overlaps(podCIDR, serviceCIDR) {
		t.Errorf("pods and Services share addresses: %s and %s", podCIDR, serviceCIDR)
	}
	if overlaps("192.0.2.2/24", clusterCIDR) {
		t.Errorf("an unrelated network counts as overlapping")
	}
}

func TestServingCertificateIsGoodForEveryNameOfTheServers(t *testing.T) {
	ca, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.server()
	if err != nil {
		t.Fatal(err)
	}
	certificate := parse(t, pair)
	roots := x509.NewCertPool()
	roots.AddCert(ca.certificate)
	for _, name := range []string{
		nodeAddress, apiServiceAddress, "127.0.0.1", "localhost", nodeName, "kubernetes", "kubernetes.default.svc.cluster.local",
	} {
		if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("as %s: %v", name, err)
		}
	}
}

func TestClientCertificateNamesUserAndGroup(t *testing.T) {
	ca, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.client("system:node:somewhere", "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	certificate := parse(t, pair)
	if diff := cmp.Diff("system:node:somewhere", certificate.Subject.CommonName); diff != "" {
		t.Errorf("user (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"system:nodes"}, certificate.Subject.Organization); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.certificate)
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
}

func parse(t *testing.T, pair keyPair) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(pair.certificate)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func TestLiveSince(t *testing.T) {
	const rest = " 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 31415 999 1"
	const restOfThreads = " 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 4 0 31415 999 1"
	for name, test := range map[string]struct {
		stat    string
		want    uint64
		wantErr bool
	}{
		"a running process":                           {stat: "42 (etcd) S" + rest, want: 31415},
		"a name with a space and a parenthesis":       {stat: "42 (a) b) S" + rest, want: 31415},
		"a zombie is not alive":                       {stat: "42 (etcd) Z" + rest, wantErr: true},
		"a zombie with threads is still about to end": {stat: "42 (etcd) Z" + restOfThreads, want: 31415},
		"a line that ends early is not understood":    {stat: "42 (etcd) S 1 2 3", wantErr: true},
		"a line without a name is not understood":     {stat: "42", wantErr: true},
		"an empty file is not understood":             {stat: "", wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := liveSince(test.stat)
			if (err != nil) != test.wantErr {
				t.Fatalf("error: %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("start time (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIdentityDoesNotOutliveItsProcess(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	identity, err := identify(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if !identity.alive() {
		t.Error("a running process isn't alive")
	}

	later := identity
	later.startTime++
	if later.alive() {
		t.Error("a process that got the id of an earlier one counts as that one")
	}
	if err := later.kill(); err != nil || !identity.alive() {
		t.Errorf("a process was killed that isn't the identified one: %v", err)
	}

	if err := identity.kill(); err != nil {
		t.Error(err)
	}
	if identity.alive() {
		t.Error("a killed process is alive")
	}
	var exit *exec.ExitError
	if err := child.Wait(); !errors.As(err, &exit) {
		t.Errorf("waiting for the killed process: %v", err)
	}
}

func TestIsNode(t *testing.T) {
	for name, test := range map[string]struct {
		cmdline, status string
		want            bool
	}{
		"process 1 of the node's namespace": {
			cmdline: "localcluster\x00--bin\x00/src/bin\x00node\x00", status: "Name:\texe\nNSpid:\t4711\t1\n", want: true,
		},
		"the command that a person runs": {
			cmdline: "bin/localcluster\x00up\x00", status: "NSpid:\t4711\n",
		},
		"the same words outside a namespace": {
			cmdline: "localcluster\x00--bin\x00/src/bin\x00node\x00", status: "NSpid:\t4711\n",
		},
		"process 1 of another's namespace": {
			cmdline: "/sbin/init\x00", status: "NSpid:\t4711\t1\n",
		},
		"a kernel thread": {},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isNode(test.cmdline, test.status); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestHierarchies(t *testing.T) {
	const mountinfo = `24 27 0:6 / /dev rw,relatime - devtmpfs devtmpfs rw,size=12334192k
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
	want := []hierarchy{
		{mountPoint: "/sys/fs/cgroup/cpu,cpuacct", options: []string{"rw", "cpu", "cpuacct"}},
		{mountPoint: "/sys/fs/cgroup/systemd", options: []string{"rw", "name=systemd"}},
		{mountPoint: "/sys/fs/cgroup/unified", unified: true},
	}
	if diff := cmp.Diff(want, hierarchies(mountinfo), cmp.AllowUnexported(hierarchy{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMountsBelow(t *testing.T) {
	const mountinfo = `27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
50 27 0:40 / /var/lib/cluster rw - tmpfs tmpfs rw
51 27 0:41 / /var/lib/cluster/kubelet/pods rw - tmpfs tmpfs rw
52 27 0:42 / /var/lib/cluster-of-another rw - tmpfs tmpfs rw
`
	want := []string{"/var/lib/cluster", "/var/lib/cluster/kubelet/pods"}
	if diff := cmp.Diff(want, mountsBelow(mountinfo, "/var/lib/cluster")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLibraries(t *testing.T) {
	const ldd = `	linux-vdso.so.1 (0x00007ffd9d5f2000)
	libevent-2.1.so.7 => /lib/x86_64-linux-gnu/libevent-2.1.so.7 (0x00007f1c2a000000)
	/lib64/ld-linux-x86-64.so.2 (0x00007f1c2a2b4000)
`
	want := []string{"/lib/x86_64-linux-gnu/libevent-2.1.so.7", "/lib64/ld-linux-x86-64.so.2"}
	if diff := cmp.Diff(want, libraries(ldd)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLocalReference(t *testing.T) {
	for image, want := range map[string]string{
		"memcached:1.6.45":                          registryAddress + "/docker.io/library/memcached:1.6.45",
		"docker.io/library/memcached:1.6.45":        registryAddress + "/docker.io/library/memcached:1.6.45",
		"quay.io/example-inc/memcached-operator:v1": registryAddress + "/quay.io/example-inc/memcached-operator:v1",
		registryAddress + "/plain:v1":               registryAddress + "/plain:v1",
	} {
		t.Run(image, func(t *testing.T) {
			reference, err := localReference(image)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, reference.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if reference, err := localReference("Not An Image"); err == nil {
		t.Errorf("a name that is none became %s", reference)
	}
}

func TestMirrorRequestsAreServedUnderTheUpstreamName(t *testing.T) {
	for request, want := range map[string]string{
		"/v2/library/memcached/manifests/1?ns=docker.io": "/v2/docker.io/library/memcached/manifests/1",
		"/v2/docker.io/library/memcached/manifests/1":    "/v2/docker.io/library/memcached/manifests/1",
		"/v2/?ns=docker.io":                              "/v2/",
		"/v2/plain/manifests/1?ns=" + registryAddress:    "/v2/plain/manifests/1",
	} {
		t.Run(request, func(t *testing.T) {
			var got string
			handler := underUpstreamName(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.URL.Path }))
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, request, http.NoBody))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBinaryImageIsReproducible(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "manager")
	if err := os.WriteFile(binary, []byte("a program"), 0o700); err != nil {
		t.Fatal(err)
	}
	first, err := binaryImage("quay.io/example-inc/memcached-operator:v1", binary)
	if err != nil {
		t.Fatal(err)
	}
	second, err := binaryImage("quay.io/example-inc/memcached-operator:v1", binary)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := first.Digest()
	if err != nil {
		t.Fatal(err)
	}
	again, err := second.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(digest, again); diff != "" {
		t.Errorf("digest (-first +second):\n%s", diff)
	}
	config, err := first.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/manager"}, config.Config.Entrypoint); diff != "" {
		t.Errorf("entrypoint (-want +got):\n%s", diff)
	}
	if config.Config.Labels[standInLabel] != "true" {
		t.Errorf("the image doesn't say that it is a stand-in: %v", config.Config.Labels)
	}
}

func TestLayerHasFoldersBeforeTheirFiles(t *testing.T) {
	layer, err := layerOf([]file{{"/usr/bin/memcached", 0o755, []byte("elf")}, {"/etc/passwd", 0o644, []byte("memcache")}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for archive := tar.NewReader(bytes.NewReader(layer)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
	want := []string{"etc/", "etc/passwd", "usr/", "usr/bin/", "usr/bin/memcached"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMemcachedTagsDifferInDigest(t *testing.T) {
	var digests []string
	for _, replaced := range memcachedImages {
		image, err := memcachedImage(replaced, "1.6.18", nil)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest.String())
	}
	if digests[0] == digests[1] {
		t.Errorf("both are %s", digests[0])
	}
}

func TestTail(t *testing.T) {
	if diff := cmp.Diff("    two\n    three", tail([]byte("one\ntwo\nthree\n\n"), 2)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFailureShowsTheReasonOfTheComponent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	exited <- errors.New("exit status 7")
	failed := (&process{component: component{name: "etcd", ready: listens("tcp", address)}, exited: exited}).await(t.Context())
	if failed == nil || !strings.HasPrefix(failed.Error(), "etcd: it ended: exit status 7") {
		t.Errorf("got: %v", failed)
	}
}

func TestExitCodeIsTheCommands(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -TERM $$": 128 + 15} {
		t.Run(script, func(t *testing.T) {
			code, err := runIn([]string{"sh", "-c", script}, make(chan os.Signal))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, code); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
