// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Package bundle makes the bundle that the Operator Lifecycle Manager (OLM) installs the operator from. Everything in it
// comes from the manifests in config/, so what OLM installs is what `make deploy` installs, and the same input gives the
// same bytes: no clock, no map order, no network unless digests are asked for.
package bundle

import (
	"context"
	"fmt"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/yaml"
)

// packageName is the operator's name in catalogs. Subscriptions refer to it, so it can't change.
const packageName = "memcached-operator"

// Request says which bundle to make. The messages of errors call its fields by their names in the Makefile.
type Request struct {
	// Config is the folder of the manifests: config/.
	Config string
	// Version of the operator, and PreviousVersion, which it replaces; that is empty for the first version of all.
	Version, PreviousVersion string
	// Channels of the catalog that the bundle is meant for. One of them is the DefaultChannel.
	Channels       []string
	DefaultChannel string
	// Images to name in place of those that config/images/images.env gives, by their names there.
	Images map[string]string
	// Digest looks up the digest of an image, to pin it. If it is nil, images are named as they are.
	Digest func(ctx context.Context, image string) (string, error)
}

// Files are contents by path, slash-separated, from the root of the repository.
type Files map[string][]byte

// Build makes bundle/ and bundle.Dockerfile. Its errors are single lines that name what is wrong, the value, and the remedy.
func Build(ctx context.Context, request Request) (Files, error) {
	release, err := newRelease(request)
	if err != nil {
		return nil, err
	}
	images, err := readImages(request.Config, request.Images)
	if err != nil {
		return nil, err
	}
	from, err := render(request.Config)
	if err != nil {
		return nil, err
	}
	csv, err := clusterServiceVersion(from, release)
	if err != nil {
		return nil, err
	}
	if err := placeImages(ctx, csv, images, request.Digest); err != nil {
		return nil, err
	}
	return files(csv, from, release)
}

// files lays the bundle out as OLM and the catalogs expect it.
func files(csv *v1alpha1.ClusterServiceVersion, from *manifests, release release) (Files, error) {
	filled, err := asWritten(csv)
	if err != nil {
		return nil, err
	}
	contents := map[string]any{
		"manifests/" + packageName + ".clusterserviceversion.yaml": filled,
		"metadata/annotations.yaml":                                map[string]any{"annotations": release.annotations()},
		"tests/scorecard/config.yaml":                              from.scorecard[0],
	}
	for _, object := range from.objects {
		object.SetNamespace("") // OLM installs it into the namespace that it is told
		contents["manifests/"+fileName(object)] = object.Object
	}
	bundle := Files{"bundle.Dockerfile": dockerfile(release)}
	for name, content := range contents {
		text, err := yaml.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", name, err)
		}
		bundle["bundle/"+name] = append([]byte(written), text...)
	}
	return bundle, nil
}

// written heads each file.
const written = "# Written by `make bundle` from the manifests in config/: make changes there.\n"
