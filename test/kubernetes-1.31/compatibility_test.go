// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Package compatibility_test holds what the operator applies against the API of the oldest Kubernetes that is supported.
// A field that an API server doesn't know is dropped without a word, and the operator would apply it for ever.
package compatibility_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

func TestKubernetes131KnowsEveryFieldThatIsApplied(t *testing.T) {
	kinds := map[string]func() any{
		"apps/v1 Deployment": func() any { return &appsv1.Deployment{} },
		"v1 Service":         func() any { return &corev1.Service{} },
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "internal", "resources", "testdata", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var checked int
	for _, path := range files {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for documents := utilyaml.NewYAMLReader(bufio.NewReader(file)); ; checked++ {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			var kind metav1.TypeMeta
			if err = yaml.Unmarshal(document, &kind); err != nil {
				t.Fatal(err)
			}
			newObject, known := kinds[kind.APIVersion+" "+kind.Kind]
			if !known {
				t.Fatalf("%s: %s %s is not of 1.31, or this test doesn't know that it is", path, kind.APIVersion, kind.Kind)
			}
			if err = yaml.UnmarshalStrict(document, newObject()); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		if err = file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if checked < 2 {
		t.Errorf("only %d objects were checked", checked)
	}
}
