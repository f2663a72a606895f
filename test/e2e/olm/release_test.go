// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package olm

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/crane"

	"github.com/example-inc/memcached-operator/internal/bundle"
	"github.com/example-inc/memcached-operator/test/e2e/framework"
)

// release is a version of the operator, as it is published.
type release struct {
	version string
	// manager and memcached are images, by tag.
	manager, memcached string
	replaces           *release
	// image of the bundle, by digest, once it is published.
	image string
}

func (r release) csv() string { return packageName + ".v" + r.version }

// registry is the local one, which has every image under its upstream name.
var registry struct {
	address string
	// authority is the file of the certificate that it is trusted by, and transport trusts it.
	authority string
	transport *http.Transport
	// mirrors is the file by which container tools know it as the mirror of quay.io.
	mirrors string
}

func findRegistry(mirrors string) error {
	registry.address, registry.authority, registry.mirrors = os.Getenv("LOCALCLUSTER_REGISTRY"), os.Getenv("LOCALCLUSTER_CA"), mirrors
	if registry.address == "" || registry.authority == "" || opmImage == "" {
		return errors.New("LOCALCLUSTER_REGISTRY, LOCALCLUSTER_CA or OPM_IMG is not set: run these tests by `make e2e-olm`")
	}
	pem, err := os.ReadFile(registry.authority)
	if err != nil {
		return err
	}
	mirror := fmt.Sprintf("[[registry]]\nlocation = \"quay.io\"\n[[registry.mirror]]\nlocation = %q\n", local("quay.io"))
	if err = os.WriteFile(mirrors, []byte(mirror), 0o600); err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	registry.transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	return nil
}

// local is where the registry has an image.
func local(image string) string { return registry.address + "/" + image }

// digest stands for asking the upstream registry.
func digest(ctx context.Context, image string) (string, error) {
	return crane.Digest(local(image), crane.WithContext(ctx), crane.WithTransport(registry.transport))
}

// publish writes the release's bundle, with every image named by its digest, into the folder and pushes it.
func (r *release) publish(ctx context.Context, folder string) error {
	config := filepath.Join(folder, "config")
	if err := os.CopyFS(config, os.DirFS(filepath.Join(framework.Root(), "config"))); err != nil {
		return err
	}
	request := bundle.Request{
		Config:         config,
		Version:        r.version,
		Channels:       []string{"candidate-v1", "stable-v1"},
		DefaultChannel: "stable-v1",
		Images:         map[string]string{"manager": r.manager, "memcached": r.memcached},
		Digest:         digest,
	}
	if r.replaces != nil {
		request.PreviousVersion = r.replaces.version
		if err := addField(config); err != nil {
			return err
		}
	}
	files, err := bundle.Build(ctx, request)
	if err != nil {
		return err
	}
	if err = files.Write(folder); err != nil {
		return err
	}
	tag := fmt.Sprintf("quay.io/example-inc/memcached-operator-bundle:v%s", r.version)
	if err = pushImage(ctx, filepath.Join(folder, "bundle.Dockerfile"), tag, folder); err != nil {
		return err
	}
	found, err := digest(ctx, tag)
	r.image = "quay.io/example-inc/memcached-operator-bundle@" + found
	return err
}

// newField is an optional field that the CRD of the next release has and that of this one hasn't.
const newField = "fieldOfTheNextRelease"

// addField gives newField to the CRD. It is text, so that the file is still read by what reads it otherwise.
func addField(config string) error {
	file := filepath.Join(config, "crd", "bases", "cache.example.com_memcacheds.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	const before = "              imagePolicy:\n"
	if strings.Count(string(text), before) != 1 {
		return fmt.Errorf("%s has not exactly one line %q", file, before)
	}
	field := fmt.Sprintf("              %s:\n                description: Of the next release.\n                type: string\n", newField)
	return os.WriteFile(file, []byte(strings.Replace(string(text), before, field+before, 1)), 0o600)
}

// pushImage builds what needs no container tool to be built.
func pushImage(ctx context.Context, dockerfile, image, folder string) error {
	if _, err := tool(ctx, "image", "build", "--file", dockerfile, "--tag", local(image), folder); err != nil {
		return err
	}
	_, err := tool(ctx, "image", "push", local(image))
	return err
}

// tool runs a command of bin/, or make, that trusts the registry, and knows it as the mirror of quay.io. It returns what
// the command printed, and the error has what it complained about.
func tool(ctx context.Context, name string, args ...string) (string, error) {
	if name != "make" {
		name = filepath.Join(framework.Root(), "bin", name)
	}
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = framework.Root()
	command.Env = append(os.Environ(), "SSL_CERT_FILE="+registry.authority, "CONTAINERS_REGISTRIES_CONF="+registry.mirrors)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}
