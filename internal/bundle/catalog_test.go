// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package bundle

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// template is the basic template of a file-based catalog. Its types are in operator-registry, which is too much to depend on
// for them.
type template struct {
	Schema  string
	Entries []templateEntry
}

type templateEntry struct {
	Schema, Name, Package, DefaultChannel, Image string
	Entries                                      []edge
}

// edge is a version in a channel, and the versions that it can be reached from.
type edge struct {
	Name, Replaces, SkipRange string
}

func TestCatalog(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "catalog", "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	images, err := readImages(filepath.Join(root, "config"), nil)
	if err != nil {
		t.Fatal(err)
	}
	bundle := slices.IndexFunc(images, func(image listedImage) bool { return image.name == "bundle" })
	for _, problem := range catalogProblems(t, string(text), load(t, committed(t)), images[bundle].listed) {
		t.Error(problem)
	}
}

// catalogProblems compares a template with the newest bundle, and its channels with what OLM can upgrade along.
func catalogProblems(t *testing.T, text string, b *loaded, image string) []string {
	t.Helper()
	var catalog template
	if err := yaml.UnmarshalStrict([]byte(text), &catalog); err != nil {
		t.Fatal(err)
	}
	var all []string
	channels := map[string][]edge{}
	var bundles []string
	for _, entry := range catalog.Entries {
		switch entry.Schema {
		case "olm.package":
			if entry.Name != b.Package || entry.DefaultChannel != b.DefaultChannel {
				all = append(all, fmt.Sprintf("package %s has the default channel %s", entry.Name, entry.DefaultChannel))
			}
		case "olm.channel":
			channels[entry.Name] = entry.Entries
		case "olm.bundle":
			bundles = append(bundles, entry.Image)
		}
	}
	if got := slices.Sorted(maps.Keys(channels)); !slices.Equal(got, slices.Sorted(slices.Values(b.Channels))) {
		all = append(all, fmt.Sprintf("the channels are %q, and the bundle is meant for %q", got, b.Channels))
	}
	for name, edges := range channels {
		want := edge{b.CSV.Name, b.CSV.Spec.Replaces, b.CSV.Annotations["olm.skipRange"]}
		if len(edges) == 0 || edges[len(edges)-1] != want {
			all = append(all, fmt.Sprintf("channel %s doesn't end with %+v", name, want))
		}
		all = append(all, channelProblems(name, edges)...)
	}
	if !slices.Contains(bundles, image) {
		all = append(all, "there is no bundle "+image)
	}
	versions := map[string]bool{}
	for _, edges := range channels {
		for _, edge := range edges {
			versions[edge.Name] = true
		}
	}
	if len(bundles) != len(versions) {
		all = append(all, fmt.Sprintf("the channels name %d versions, and there are %d bundles", len(versions), len(bundles)))
	}
	slices.Sort(all)
	return all
}

// channelProblems: each version but the first replaces the one before, so that none is left without a way up.
func channelProblems(name string, edges []edge) []string {
	var all []string
	for i := 1; i < len(edges); i++ {
		if edges[i].Replaces != edges[i-1].Name {
			all = append(all, fmt.Sprintf("channel %s: %s replaces %q, and %s before it is left without a way up",
				name, edges[i].Name, edges[i].Replaces, edges[i-1].Name))
		}
	}
	if len(edges) > 0 && edges[0].Replaces != "" {
		all = append(all, fmt.Sprintf("channel %s: %s replaces %s, which the channel doesn't have", name, edges[0].Name, edges[0].Replaces))
	}
	return all
}

func TestCatalogProblemsAreFound(t *testing.T) {
	const good = `
schema: olm.template.basic
entries:
- {schema: olm.package, name: memcached-operator, defaultChannel: stable-v1}
- schema: olm.channel
  package: memcached-operator
  name: candidate-v1
  entries:
  - name: memcached-operator.v0.1.0
  - {name: memcached-operator.v0.2.0, replaces: memcached-operator.v0.1.0, skipRange: ">=0.1.0 <0.2.0"}
- schema: olm.channel
  package: memcached-operator
  name: stable-v1
  entries:
  - name: memcached-operator.v0.1.0
  - {name: memcached-operator.v0.2.0, replaces: memcached-operator.v0.1.0, skipRange: ">=0.1.0 <0.2.0"}
- {schema: olm.bundle, image: example.com/bundle:v0.1.0}
- {schema: olm.bundle, image: example.com/bundle:v0.2.0}
`
	asked := request()
	asked.Version, asked.PreviousVersion = "0.2.0", "0.1.0"
	b := load(t, build(t, asked))

	for name, test := range map[string]struct {
		before, after string
		want          []string
	}{
		"none": {"", "", nil},
		"another default channel": {
			"defaultChannel: stable-v1", "defaultChannel: candidate-v1",
			[]string{"package memcached-operator has the default channel candidate-v1"},
		},
		"a channel of another name": {
			"name: candidate-v1", "name: alpha",
			[]string{`the channels are ["alpha" "stable-v1"], and the bundle is meant for ["candidate-v1" "stable-v1"]`},
		},
		"another bundle's image": {
			"bundle:v0.2.0", "bundle:v0.2.1",
			[]string{"there is no bundle example.com/bundle:v0.2.0"},
		},
		"a version without a bundle": {
			"- {schema: olm.bundle, image: example.com/bundle:v0.1.0}\n", "",
			[]string{"the channels name 2 versions, and there are 1 bundles"},
		},
		"a version without a way up": {
			"  name: candidate-v1\n  entries:\n  - name: memcached-operator.v0.1.0\n",
			"  name: candidate-v1\n  entries:\n  - name: memcached-operator.v0.1.0\n  - name: memcached-operator.v0.1.1\n",
			[]string{
				`channel candidate-v1: memcached-operator.v0.1.1 replaces "", and memcached-operator.v0.1.0 before it is left without a way up`,
				`channel candidate-v1: memcached-operator.v0.2.0 replaces "memcached-operator.v0.1.0", and memcached-operator.v0.1.1 before it is left without a way up`,
				"the channels name 3 versions, and there are 2 bundles",
			},
		},
		"the newest version is missing": {
			"  - {name: memcached-operator.v0.2.0, replaces: memcached-operator.v0.1.0, skipRange: \">=0.1.0 <0.2.0\"}\n", "",
			[]string{"channel candidate-v1 doesn't end with {Name:memcached-operator.v0.2.0 Replaces:memcached-operator.v0.1.0 SkipRange:>=0.1.0 <0.2.0}"},
		},
		"a version that the channel doesn't have is replaced": {
			"  - name: memcached-operator.v0.1.0\n", "  - {name: memcached-operator.v0.1.0, replaces: memcached-operator.v0.0.9}\n",
			[]string{"channel candidate-v1: memcached-operator.v0.1.0 replaces memcached-operator.v0.0.9, which the channel doesn't have"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(good, test.before) {
				t.Fatalf("the template has no %q", test.before)
			}
			text := strings.Replace(good, test.before, test.after, 1)
			if diff := cmp.Diff(test.want, catalogProblems(t, text, b, "example.com/bundle:v0.2.0")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
