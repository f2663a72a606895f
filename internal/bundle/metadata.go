// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package bundle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// openShiftVersions are those whose catalogs take the bundle: this one and every later one. The base of the
// ClusterServiceVersion has the Kubernetes version that it stands for as minKubeVersion.
const openShiftVersions = "v4.18"

// annotations say what the bundle is. Tools read them in metadata/annotations.yaml or, being labels of the bundle's image
// as well, without pulling it.
func (r release) annotations() map[string]string {
	return map[string]string{
		"operators.operatorframework.io.bundle.mediatype.v1":       "registry+v1",
		"operators.operatorframework.io.bundle.manifests.v1":       "manifests/",
		"operators.operatorframework.io.bundle.metadata.v1":        "metadata/",
		"operators.operatorframework.io.bundle.package.v1":         packageName,
		"operators.operatorframework.io.bundle.channels.v1":        strings.Join(r.channels, ","),
		"operators.operatorframework.io.bundle.channel.default.v1": r.defaultChannel,
		"operators.operatorframework.io.test.mediatype.v1":         "scorecard+v1",
		"operators.operatorframework.io.test.config.v1":            "tests/scorecard/",
		"com.redhat.openshift.versions":                            openShiftVersions,
		"com.redhat.delivery.operator.bundle":                      "true",
		"com.redhat.delivery.backport":                             "false",
	}
}

// dockerfile makes the bundle's image: the files, and the annotations as labels.
func dockerfile(release release) []byte {
	var text strings.Builder
	text.WriteString(written + "FROM scratch\n\n")
	annotations := release.annotations()
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		fmt.Fprintf(&text, "LABEL %s=%s\n", key, annotations[key])
	}
	text.WriteString("\n")
	for _, folder := range []string{"manifests", "metadata", "tests/scorecard"} {
		fmt.Fprintf(&text, "COPY bundle/%s /%[1]s/\n", folder)
	}
	return []byte(text.String())
}
