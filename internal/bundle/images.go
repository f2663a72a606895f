// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package bundle

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// imagesFile names every image, and is what kustomize puts into the manifests.
const imagesFile = "config/images/images.env"

// relatedImage begins the environment variables that tell the manager which images to run. Mirroring tools look for them.
const relatedImage = "RELATED_IMAGE_"

// listedImage is one that the images file names.
type listedImage struct {
	name string
	// listed is the reference in the file, and so in the rendered manifests.
	listed string
	// reference is what the bundle has instead: the caller's choice or, if there is none, the same.
	reference string
}

// readImages reads the images file, and replaces those that the caller chose.
func readImages(config string, chosen map[string]string) ([]listedImage, error) {
	text, err := os.ReadFile(filepath.Join(config, "images", "images.env"))
	if err != nil {
		return nil, fmt.Errorf("reading the list of images: %w", err)
	}
	var images []listedImage
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, listed, _ := strings.Cut(line, "=")
		reference, source := listed, imagesFile
		if choice, ok := chosen[key]; ok {
			reference, source = choice, "the image that was chosen (IMG, if by make)"
		}
		if _, err := name.ParseReference(reference, name.StrictValidation); err != nil {
			return nil, fmt.Errorf("%s: %s is %q, which is no image with its registry and its tag or digest: "+
				"give one such as quay.io/example-inc/memcached-operator:v0.1.0", source, key, reference)
		}
		images = append(images, listedImage{key, listed, reference})
	}
	return images, checkNames(config, images, chosen)
}

// checkNames finds names that are asked for and not in the file. kustomize finds them too, but says so in terms of its own.
func checkNames(config string, images []listedImage, chosen map[string]string) error {
	missing := func(name string) bool {
		return !slices.ContainsFunc(images, func(image listedImage) bool { return image.name == name })
	}
	for name, reference := range chosen {
		if missing(name) {
			return fmt.Errorf("there is no image %q to be %s: give a name of %s", name, reference, imagesFile)
		}
	}
	kustomizations, err := filepath.Glob(filepath.Join(config, "*", "kustomization.yaml"))
	if err != nil {
		return err
	}
	for _, file := range kustomizations {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading a kustomization: %w", err)
		}
		var kustomization types.Kustomization
		if err := yaml.Unmarshal(text, &kustomization); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		for _, replacement := range kustomization.Replacements {
			if replacement.Source == nil || replacement.Source.Name != "images" {
				continue
			}
			if name := strings.TrimPrefix(replacement.Source.FieldPath, "data."); missing(name) {
				return fmt.Errorf("%s has no image %q, which %s asks for: add a line %s=REFERENCE", imagesFile, name, file, name)
			}
		}
	}
	return nil
}

// use is a place where the ClusterServiceVersion names an image.
type use struct {
	where string
	image *string
}

// uses are all places of the Deployments that name an image: containers run it, or tell the manager to run it.
func uses(csv *v1alpha1.ClusterServiceVersion) []use {
	var all []use
	for d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		pod := &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[d].Spec.Template.Spec
		for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
			for c := range containers {
				container := &containers[c]
				all = append(all, use{"the image of container " + container.Name, &container.Image})
				for e := range container.Env {
					if env := &container.Env[e]; strings.HasPrefix(env.Name, relatedImage) {
						all = append(all, use{env.Name + " of container " + container.Name, &env.Value})
					}
				}
			}
		}
	}
	return all
}

// placeImages puts the images that were chosen where the manifests have the listed ones, pinned if there is a way to look
// up digests, and lists them all for those who mirror them.
func placeImages(ctx context.Context, csv *v1alpha1.ClusterServiceVersion, images []listedImage, digest func(context.Context, string) (string, error)) error {
	related := map[string]string{}
	for _, use := range uses(csv) {
		at := slices.IndexFunc(images, func(image listedImage) bool { return image.listed == *use.image })
		if at < 0 {
			return fmt.Errorf("config/manifests: %s is %q, which %s doesn't have: add it there, and take it from there",
				use.where, *use.image, imagesFile)
		}
		image := images[at]
		if _, known := related[image.name]; !known {
			pinned, err := pin(ctx, image.reference, digest)
			if err != nil {
				return fmt.Errorf("pinning image %s: %w", image.name, err)
			}
			related[image.name] = pinned
			csv.Spec.RelatedImages = append(csv.Spec.RelatedImages, v1alpha1.RelatedImage{Name: image.name, Image: pinned})
		}
		*use.image = related[image.name]
	}
	slices.SortFunc(csv.Spec.RelatedImages, func(a, b v1alpha1.RelatedImage) int { return strings.Compare(a.Name, b.Name) })
	csv.Annotations["containerImage"] = related["manager"]
	if digest == nil {
		return nil
	}
	return checkPinned(csv)
}

// pin replaces the tag of an image by its digest. The rest stays as it is written: the library calls docker.io by another
// name of its own, which the rules of mirrors don't know.
func pin(ctx context.Context, reference string, digest func(context.Context, string) (string, error)) (string, error) {
	if digest == nil {
		return reference, nil
	}
	if _, err := name.NewDigest(reference, name.StrictValidation); err == nil {
		tagged, pinned, _ := strings.Cut(reference, "@")
		return withoutTag(tagged) + "@" + pinned, nil
	}
	found, err := digest(ctx, reference)
	if err != nil {
		return "", err
	}
	return withoutTag(reference) + "@" + found, nil
}

// withoutTag leaves the colon of a registry's port.
func withoutTag(reference string) string {
	if colon := strings.LastIndex(reference, ":"); colon > strings.LastIndex(reference, "/") {
		return reference[:colon]
	}
	return reference
}

// Digest asks the registry that an image names for the image's digest; of an image for several architectures, it is that
// of the index. It signs in with the credentials of `docker login` or `podman login`, if there are any.
func Digest(ctx context.Context, image string) (string, error) {
	found, err := crane.Get(image, crane.WithContext(ctx)) // a mere HEAD takes whatever page answers in a registry's place
	if err == nil && !found.MediaType.IsImage() && !found.MediaType.IsIndex() {
		err = fmt.Errorf("the answer is no image, but %q", found.MediaType)
	}
	if err != nil {
		return "", fmt.Errorf("%s has no digest: push it first, sign in to its registry, or name another (%w)", image, err)
	}
	return found.Digest.String(), nil
}

var (
	// imageLike is a reference with a registry. A URL is none: it has a colon before its slashes.
	imageLike = regexp.MustCompile(`^([a-z0-9-]+\.[a-z0-9.-]+|[a-z0-9-]+:[0-9]+)(:[0-9]+)?(/[a-z0-9._-]+)+(:[\w.-]+)?(@sha256:[0-9a-f]+)?$`)
	pinned    = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)
)

// checkPinned refuses tags in annotations of the base as well: mirroring tools replace only what is pinned.
func checkPinned(csv *v1alpha1.ClusterServiceVersion) error {
	for _, key := range slices.Sorted(maps.Keys(csv.Annotations)) {
		if value := csv.Annotations[key]; imageLike.MatchString(value) && !pinned.MatchString(value) {
			return fmt.Errorf("%s: metadata.annotations[%q] is %q, and USE_IMAGE_DIGESTS is true: name the image by its digest", base, key, value)
		}
	}
	return nil
}
