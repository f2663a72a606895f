// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

func TestPodMemory(t *testing.T) {
	tests := map[string]struct {
		memory         string
		maxConnections int32
		want           string
	}{
		"by default":                           {memory: "0", want: "160Mi"},
		"the least memory":                     {memory: "8Mi", want: "104Mi"},
		"where a quarter isn't more yet":       {memory: "384Mi", want: "480Mi"},
		"where a quarter is more":              {memory: "388Mi", want: "485Mi"},
		"in another notation":                  {memory: "0.5Gi", want: "640Mi"},
		"a large cache":                        {memory: "1Ti", want: "1280Gi"},
		"fewer connections than default":       {memory: "64Mi", maxConnections: 100, want: "160Mi"},
		"one connection more than the default": {memory: "64Mi", maxConnections: 1025, want: "163856Ki"},
		"many connections":                     {memory: "64Mi", maxConnections: 65536, want: "1168Mi"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := podMemory(memcached(cachev1.MemcachedSpec{Memory: resource.MustParse(test.memory), MaxConnections: test.maxConnections}))
			if want := resource.MustParse(test.want); got.Cmp(want) != 0 {
				t.Errorf("a pod gets %s of memory, want %s", &got, &want)
			}
		})
	}
}

func TestResourcesOfTheUserGoFirst(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		all := corev1.ResourceList{}
		if cpu != "" {
			all[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			all[corev1.ResourceMemory] = resource.MustParse(memory)
		}
		return all
	}
	tests := map[string]struct {
		users            cachev1.Resources
		requests, limits corev1.ResourceList
	}{
		"none":                      {cachev1.Resources{}, list("50m", "160Mi"), list("", "160Mi")},
		"a memory limit":            {cachev1.Resources{Limits: list("", "1Gi")}, list("50m", "1Gi"), list("", "1Gi")},
		"a memory request":          {cachev1.Resources{Requests: list("", "128Mi")}, list("50m", "128Mi"), list("", "160Mi")},
		"memory, request and limit": {cachev1.Resources{Limits: list("", "1Gi"), Requests: list("", "1Mi")}, list("50m", "1Mi"), list("", "1Gi")},
		"a cpu request":             {cachev1.Resources{Requests: list("2", "")}, list("2", "160Mi"), list("", "160Mi")},
		"a cpu limit":               {cachev1.Resources{Limits: list("10m", "")}, list("", "160Mi"), list("10m", "160Mi")},
		"another resource": {
			cachev1.Resources{Limits: corev1.ResourceList{"example.com/nic": resource.MustParse("1")}},
			list("50m", "160Mi"),
			corev1.ResourceList{"example.com/nic": resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("160Mi")},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := containerResources(memcached(cachev1.MemcachedSpec{Resources: test.users}))
			if diff := cmp.Diff(test.requests, *got.Requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.limits, *got.Limits); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheDeadlineLeavesTimeForAPodToBecomeAvailable(t *testing.T) {
	tests := map[string]struct {
		minReadySeconds *int32
		want            int32
	}{
		"by default":       {nil, 600},
		"none":             {new(int32(0)), 600},
		"where it matters": {new(int32(301)), 601},
		"an hour":          {new(int32(3600)), 3900},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := progressDeadlineSeconds(memcached(cachev1.MemcachedSpec{MinReadySeconds: test.minReadySeconds})); got != test.want {
				t.Errorf("progressDeadlineSeconds is %d, want %d", got, test.want)
			}
		})
	}
}
