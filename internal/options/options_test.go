// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package options

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// environment is a getenv with the required variable set, unless overridden.
func environment(variables map[string]string) func(string) string {
	return func(name string) string {
		if value, set := variables[name]; set {
			return value
		}
		return map[string]string{RelatedImageMemcached: "memcached:1"}[name]
	}
}

func TestParse(t *testing.T) {
	defaults := Options{
		MemcachedImage: "memcached:1", Concurrency: 16,
		MetricsAddress: "127.0.0.1:8080", ProbeAddress: ":8081",
		LeaseDuration: 137 * time.Second, RenewDeadline: 107 * time.Second, RetryPeriod: 26 * time.Second,
	}
	with := func(change func(*Options)) Options {
		options := defaults
		change(&options)
		return options
	}
	tests := map[string]struct {
		arguments   []string
		environment map[string]string
		want        Options
	}{
		"nothing given": {want: defaults},
		"namespaces": {
			environment: map[string]string{WatchNamespace: "shop, bank,,shop"},
			want:        with(func(o *Options) { o.Namespaces = []string{"shop", "bank"} }),
		},
		"a ServiceMonitor": {
			environment: map[string]string{ServiceMonitorNamespace: "operators"},
			want:        with(func(o *Options) { o.ServiceMonitorNamespace = "operators" }),
		},
		"single-node leader election by environment": {
			environment: map[string]string{LeaseDuration: "270s", RenewDeadline: "240s", RetryPeriod: "1m"},
			want: with(func(o *Options) {
				o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = 270*time.Second, 240*time.Second, time.Minute
			}),
		},
		"a flag goes before its environment variable": {
			arguments:   []string{"--leader-elect", "--leader-election-retry-period=5s"},
			environment: map[string]string{RetryPeriod: "1m"},
			want:        with(func(o *Options) { o.LeaderElection, o.RetryPeriod = true, 5*time.Second }),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(test.arguments, environment(test.environment))
			if err != nil {
				t.Fatal(err)
			}
			got.Log = defaults.Log // holds functions, which don't compare
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	tests := map[string]struct {
		arguments   []string
		environment map[string]string
		want        []string
	}{
		"no memcached image":             {environment: map[string]string{RelatedImageMemcached: ""}, want: []string{RelatedImageMemcached, "empty", "memcached:1.6.45"}},
		"a memcached image with a space": {environment: map[string]string{RelatedImageMemcached: "memcached :1"}, want: []string{RelatedImageMemcached, `"memcached :1"`, "white space"}},
		"a namespace with spaces":        {environment: map[string]string{WatchNamespace: "shop,my shop"}, want: []string{WatchNamespace, `"my shop"`}},
		"a duration without unit":        {environment: map[string]string{LeaseDuration: "137"}, want: []string{LeaseDuration, `"137"`, `"2m17s"`}},
		"a lease that ends before its renewal": {
			environment: map[string]string{LeaseDuration: "30s"},
			want:        []string{"lease duration > renew deadline", "30s", "1m47s"},
		},
		"no concurrency":   {arguments: []string{"--max-concurrent-reconciles=0"}, want: []string{"--max-concurrent-reconciles", "0", "1 or more"}},
		"a stray argument": {arguments: []string{"run"}, want: []string{`"run"`, "--help"}},
		"an unknown flag":  {arguments: []string{"--frobnicate"}, want: []string{"frobnicate"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(test.arguments, environment(test.environment))
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not contain %q", err, part)
				}
			}
		})
	}
}
