// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"slices"
	"strings"
	"testing"
)

// Whoever changes the manifest learns here that the stand-in must follow.
func TestTheFlagsOfTheManifestAreTaken(t *testing.T) {
	given := parseManifest(t)
	if given.listenAddress != ":8443" || given.upstream.Host != "127.0.0.1:8080" || !slices.Equal(given.allowPaths, []string{"/metrics"}) {
		t.Errorf("the flags were misunderstood: %+v", given)
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	for name, refused := range map[string]struct{ flag, want string }{
		"one that doesn't exist":       {"--logtostderr", "unknown flag: --logtostderr"},
		"an argument that is no flag":  {"true", `"true"`},
		"a required one that is empty": {"--upstream=", "--upstream is missing"},
		"an upstream that is no URL":   {"--upstream=:8080", "--upstream:"},
		"an address without a port":    {"--secure-listen-address=localhost", "--secure-listen-address:"},
		"a path's pattern":             {"--allow-paths=/metrics[", "--allow-paths:"},
		"a version of TLS":             {"--tls-min-version=1.2", "--tls-min-version:"},
		"a cipher suite":               {"--tls-cipher-suites=ECDHE-RSA-AES128-GCM-SHA256", "--tls-cipher-suites:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(append(readSidecar(t).Args, refused.flag))
			if err == nil || !strings.Contains(err.Error(), refused.want) {
				t.Errorf("%s: the error is %v, and doesn't say %s", refused.flag, err, refused.want)
			}
		})
	}
}
