// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package controllers

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/internal/platform"
	"github.com/example-inc/memcached-operator/internal/resources"
)

// The API server itself refuses what makes no sense, with a message that tells what to do.
func TestTheAPIServerRefusesBadInput(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	const long = "abcdefghij-abcdefghij-abcdefghij-abcdefghij-abcdefghij-abcdefghi" // 64 characters
	tests := map[string]struct {
		name string
		spec string
		want []string
	}{
		"size below zero":            {spec: "{size: -1}", want: []string{"spec.size", "-1", "greater than or equal to 0"}},
		"size with a fraction":       {spec: "{size: 1.5}", want: []string{"spec.size", "must be of type integer"}},
		"size as text":               {spec: `{size: "3"}`, want: []string{"spec.size", "must be of type integer", "string"}},
		"size missing":               {spec: "{}", want: []string{"spec.size", "Required value"}},
		"size null":                  {spec: "{size: null}", want: []string{"spec.size"}},
		"size beyond 32 bits":        {spec: "{size: 3000000000}", want: []string{"spec.size", "3000000000"}},
		"spec missing":               {spec: "null", want: []string{"spec", "Required value"}},
		"an unknown field":           {spec: "{size: 3, replicas: 3}", want: []string{"unknown field", "spec.replicas"}},
		"a field in upper case":      {spec: "{Size: 3}", want: []string{"unknown field", "spec.Size"}},
		"a name of 64 characters":    {name: long, spec: "{size: 1}", want: []string{"metadata.name", "63"}},
		"a name that begins with 1":  {name: "1cache", spec: "{size: 1}", want: []string{"metadata.name", "begin with a letter"}},
		"a name with a dot":          {name: "a.b", spec: "{size: 1}", want: []string{"metadata.name", "DNS-1035"}},
		"a name in upper case":       {name: "A", spec: "{size: 1}", want: []string{"metadata.name", "lower"}},
		"a name that ends in a dash": {name: "a-", spec: "{size: 1}", want: []string{"metadata.name"}},
		"an empty image":             {spec: `{size: 1, image: ""}`, want: []string{"spec.image", `""`, "leave image out"}},
		"an image with a space":      {spec: `{size: 1, image: "memcached :1"}`, want: []string{"spec.image", "memcached :1", "white space"}},
		"an imagePolicy unheard of":  {spec: "{size: 1, imagePolicy: Sometimes}", want: []string{"spec.imagePolicy", "Sometimes", "Keep", "Follow"}},
		"a nameless pull secret":     {spec: "{size: 1, imagePullSecrets: [{}]}", want: []string{"spec.imagePullSecrets", "name of a Secret"}},
		"a pull secret twice":        {spec: "{size: 1, imagePullSecrets: [{name: a}, {name: a}]}", want: []string{"spec.imagePullSecrets", "Duplicate"}},

		"memory below 8Mi":            {spec: "{size: 1, memory: 7Mi}", want: []string{"spec.memory", "7Mi", "from 8Mi to 1Ti"}},
		"memory in powers of 1000":    {spec: "{size: 1, memory: 64M}", want: []string{"spec.memory", "64M", "whole MiB"}},
		"memory with half a MiB":      {spec: "{size: 1, memory: 64.5Mi}", want: []string{"spec.memory", "64.5Mi", "whole MiB"}},
		"memory with one byte more":   {spec: "{size: 1, memory: 67108865}", want: []string{"spec.memory", "67108865", "whole MiB"}},
		"memory with a millibyte":     {spec: `{size: 1, memory: "67108864.001"}`, want: []string{"spec.memory", "whole MiB"}},
		"memory below zero":           {spec: "{size: 1, memory: -64Mi}", want: []string{"spec.memory", "-64Mi", "from 8Mi"}},
		"memory above 1Ti":            {spec: "{size: 1, memory: 2Ti}", want: []string{"spec.memory", "2Ti", "1Ti"}},
		"memory beyond all measure":   {spec: "{size: 1, memory: '1e999999999999'}", want: []string{"spec.memory", "1e999999999999"}},
		"memory that is no quantity":  {spec: "{size: 1, memory: much}", want: []string{"spec.memory", "much"}},
		"no connections":              {spec: "{size: 1, maxConnections: 0}", want: []string{"spec.maxConnections", "0", "greater than or equal to 1"}},
		"too many connections":        {spec: "{size: 1, maxConnections: 65537}", want: []string{"spec.maxConnections", "65537", "65536"}},
		"too few for the threads":     {spec: "{size: 1, maxConnections: 47}", want: []string{"spec.maxConnections", "at least 16 + 8 × threads", "48 for 4"}},
		"no threads":                  {spec: "{size: 1, threads: 0}", want: []string{"spec.threads", "0"}},
		"too many threads":            {spec: "{size: 1, threads: 65}", want: []string{"spec.threads", "65", "64"}},
		"maxItemSize 100Ki":           {spec: "{size: 1, maxItemSize: 100Ki}", want: []string{"spec.maxItemSize", "100Ki", "multiple of 512Ki"}},
		"maxItemSize 700Ki":           {spec: "{size: 1, maxItemSize: 700Ki}", want: []string{"spec.maxItemSize", "700Ki", "multiple of 512Ki"}},
		"maxItemSize 0":               {spec: "{size: 1, maxItemSize: 0}", want: []string{"spec.maxItemSize", "0", "from 512Ki"}},
		"maxItemSize above 1Gi":       {spec: "{size: 1, memory: 8Gi, maxItemSize: 2Gi}", want: []string{"spec.maxItemSize", "2Gi", "to 1Gi"}},
		"maxItemSize above half":      {spec: "{size: 1, maxItemSize: 33Mi}", want: []string{"spec.maxItemSize", "33Mi", "half of memory, which is 64Mi"}},
		"half of what memory is left": {spec: "{size: 1, memory: 8Mi, maxItemSize: 4608Ki}", want: []string{"spec.maxItemSize", "4608Ki", "8Mi"}},

		"a limit without overhead":      {spec: "{size: 1, resources: {limits: {memory: 64Mi}}}", want: []string{"spec.resources", "limits.memory is 64Mi", "memory, which is 64Mi"}},
		"a limit of one byte less":      {spec: "{size: 1, resources: {limits: {memory: 134217727}}}", want: []string{"spec.resources", "134217727"}},
		"a limit below a quarter more":  {spec: "{size: 1, memory: 1Gi, resources: {limits: {memory: 1279Mi}}}", want: []string{"spec.resources", "1279Mi", "1Gi"}},
		"a limit without connections":   {spec: "{size: 1, maxConnections: 1025, resources: {limits: {memory: 128Mi}}}", want: []string{"spec.resources", "128Mi"}},
		"an item beyond all measure":    {spec: "{size: 1, maxItemSize: '1e999999999999'}", want: []string{"spec.maxItemSize", "1e999999999999"}},
		"a limit beyond all measure":    {spec: "{size: 1, resources: {limits: {memory: '1e999999999999'}, requests: {cpu: '1e-999999999999'}}}", want: []string{"spec.resources.limits", "spec.resources.requests", "without an exponent"}},
		"claims":                        {spec: "{size: 1, resources: {claims: [{name: gpu}]}}", want: []string{"unknown field", "spec.resources.claims"}},
		"minReadySeconds above an hour": {spec: "{size: 1, minReadySeconds: 3601}", want: []string{"spec.minReadySeconds", "3601", "3600"}},
		"minReadySeconds below zero":    {spec: "{size: 1, minReadySeconds: -1}", want: []string{"spec.minReadySeconds", "-1"}},
		"a label of the operator's":     {spec: "{size: 1, podLabels: {team: shop, memcached_cr: other}}", want: []string{"spec.podLabels", "memcached_cr"}},
		"a label of Kubernetes'":        {spec: "{size: 1, podLabels: {app.kubernetes.io/name: other}}", want: []string{"spec.podLabels", "app.kubernetes.io"}},
		"a label of our domain":         {spec: "{size: 1, podLabels: {cache.example.com/slot: '1'}}", want: []string{"spec.podLabels", "cache.example.com"}},
		"an annotation of our domain":   {spec: "{size: 1, podAnnotations: {cache.example.com/image: a}}", want: []string{"spec.podAnnotations", "cache.example.com"}},
		"a constraint twice":            {spec: "{size: 1, topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}", want: []string{"spec.topologySpreadConstraints", "Duplicate"}},
		"10,000 pull secrets":           {spec: "{size: 1, imagePullSecrets: [" + numbered("{name: a%d}") + "]}", want: []string{"spec.imagePullSecrets", "Too many", "at most 16"}},
		"10,000 arguments":              {spec: "{size: 1, extraArgs: [" + strings.Repeat("-M,", 10000) + "]}", want: []string{"spec.extraArgs", "Too many", "at most 32"}},
		"10,000 tolerations":            {spec: "{size: 1, tolerations: [" + numbered("{key: a%d, operator: Exists}") + "]}", want: []string{"spec.tolerations", "Too many", "at most 64"}},
		"10,000 constraints":            {spec: "{size: 1, topologySpreadConstraints: [" + numbered("{maxSkew: 1, topologyKey: a%d, whenUnsatisfiable: DoNotSchedule}") + "]}", want: []string{"spec.topologySpreadConstraints", "Too many", "at most 16"}},
		"10,000 node labels":            {spec: "{size: 1, nodeSelector: {" + numbered("a%d: b") + "}}", want: []string{"spec.nodeSelector", "Too many", "at most 64"}},
		"10,000 pod labels":             {spec: "{size: 1, podLabels: {" + numbered("a%d: b") + "}}", want: []string{"spec.podLabels", "Too many", "at most 64"}},
		"10,000 pod annotations":        {spec: "{size: 1, podAnnotations: {" + numbered("a%d: b") + "}}", want: []string{"spec.podAnnotations", "Too many", "at most 64"}},
		"10,000 limits":                 {spec: "{size: 1, resources: {limits: {" + numbered("example.com/a%d: 1") + "}}}", want: []string{"spec.resources.limits", "Too many", "at most 8"}},
		"10,000 terms of affinity":      {spec: "{size: 1, affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" + numbered("{topologyKey: a%d}") + "]}}}", want: []string{"spec.affinity", "more than 64 terms"}},
		"a class of 254 characters":     {spec: "{size: 1, priorityClassName: " + strings.Repeat("a", 254) + "}", want: []string{"spec.priorityClassName", "253"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := createRaw(t, namespace, test.name, test.spec)
			if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
				t.Fatalf("creating gave %v, want a refusal", err)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("message %q does not contain %q", err, part)
				}
			}
		})
	}
}

func TestTheAPIServerTakesGoodInput(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	tests := map[string]struct {
		name string
		spec string
	}{
		"the smallest":            {spec: "{size: 3}"},
		"size 0":                  {spec: "{size: 0}"},
		"a name of one letter":    {name: "a", spec: "{size: 1}"},
		"a name of 63 characters": {name: strings.Repeat("a", 63), spec: "{size: 1}"},
		"an image with a digest":  {spec: "{size: 1, image: 'registry.example.com:5000/cache/memcached@sha256:0000000000000000000000000000000000000000000000000000000000000000'}"},
		"memory in bytes":         {spec: "{size: 1, memory: 67108864}"},
		"memory in KiB":           {spec: "{size: 1, memory: 65536Ki}"},
		"memory with a fraction":  {spec: "{size: 1, memory: 0.5Gi}"},
		"memory that is awkward":  {spec: "{size: 1, memory: 0.0009765625Ti}"},
		"the least memory":        {spec: "{size: 1, memory: 8Mi}"},
		"the most memory":         {spec: "{size: 1, memory: 1Ti, maxItemSize: 1Gi, maxConnections: 65536, threads: 64}"},
		"the least of the rest":   {spec: "{size: 1, maxItemSize: 512Ki, maxConnections: 24, threads: 1, minReadySeconds: 0}"},
		"half of the memory":      {spec: "{size: 1, memory: 9Mi, maxItemSize: 4.5Mi}"},
		"the least limit":         {spec: "{size: 1, resources: {limits: {memory: 128Mi}}}"},
		"a quarter more":          {spec: "{size: 1, memory: 1Gi, maxConnections: 2048, resources: {limits: {memory: 1296Mi}}}"},
		"an hour between pods":    {spec: "{size: 1, minReadySeconds: 3600}"},
		"an affinity for the pod": {spec: "{size: 1, affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: ''}]}}}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := createRaw(t, namespace, test.name, test.spec); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheAPIServerTakesTheSamples(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	var checked int
	samples := filepath.Join("..", "config", "samples")
	err := filepath.WalkDir(samples, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "kustomization.yaml" {
			return err
		}
		contents, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sample := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(contents, sample); err != nil {
			return err
		}
		sample.SetNamespace(namespace)
		checked++
		return testClient.Create(t.Context(), sample, client.DryRunAll, client.FieldValidation("Strict"))
	})
	if err != nil || checked < 4 {
		t.Errorf("%d samples were taken, then %v", checked, err)
	}
}

func TestDefaultsAreWrittenByTheAPIServer(t *testing.T) {
	t.Parallel()
	mc := create(t, newNamespace(t), cachev1.MemcachedSpec{Size: 3})
	want := cachev1.MemcachedSpec{
		Size: 3, ImagePolicy: cachev1.ImagePolicyKeep,
		Memory: resource.MustParse("64Mi"), MaxConnections: 1024, Threads: 4, MaxItemSize: resource.MustParse("1Mi"),
		MinReadySeconds: new(int32(10)),
	}
	if diff := cmp.Diff(want, mc.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}

	on := platform.Platform{DefaultImage: defaultImage}
	bare := mc.DeepCopy()
	bare.Spec = cachev1.MemcachedSpec{Size: 3}
	if diff := cmp.Diff(resources.For(bare, on, "").Deployment, resources.For(mc, on, "").Deployment); diff != "" {
		t.Errorf("without the defaults that the API server writes, it is another Deployment (-without +with):\n%s", diff)
	}
}

// numbered is YAML of 10,000 elements.
func numbered(format string) string {
	elements := make([]string, 10000)
	for i := range elements {
		elements[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(elements, ", ")
}

// createRaw sends the YAML as kubectl apply does: nothing typed in between, unknown fields refused. It stores nothing.
func createRaw(t *testing.T, namespace, name, spec string) error {
	t.Helper()
	if name == "" {
		name = "cart"
	}
	mc := &unstructured.Unstructured{Object: map[string]any{}}
	var parsed any
	if err := yaml.Unmarshal([]byte(spec), &parsed); err != nil {
		t.Fatal(err)
	}
	mc.Object["spec"] = parsed
	mc.SetGroupVersionKind(cachev1.GroupVersion.WithKind("Memcached"))
	mc.SetNamespace(namespace)
	mc.SetName(name)
	return testClient.Create(t.Context(), mc, client.DryRunAll, client.FieldValidation("Strict"))
}
