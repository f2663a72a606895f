// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package bundle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/validation"
)

// release is what tells this bundle from those of other versions.
type release struct {
	version        semver.Version
	previous       *semver.Version // nil for the first
	channels       []string
	defaultChannel string
	pinned         bool
}

func newRelease(request Request) (release, error) {
	version, err := parseVersion("VERSION", request.Version)
	if err != nil {
		return release{}, err
	}
	made := release{
		version:        version,
		channels:       request.Channels,
		defaultChannel: request.DefaultChannel,
		pinned:         request.Digest != nil,
	}
	if request.PreviousVersion != "" {
		previous, err := parseVersion("PREVIOUS_VERSION", request.PreviousVersion)
		if err != nil {
			return release{}, err
		}
		if previous.GE(version) {
			return release{}, fmt.Errorf("PREVIOUS_VERSION is %q, which is not older than VERSION, %q: give the version that this one replaces",
				request.PreviousVersion, request.Version)
		}
		made.previous = &previous
	}
	for _, channel := range made.channels {
		if problems := validation.IsDNS1123Subdomain(channel); len(problems) > 0 {
			return release{}, fmt.Errorf("CHANNELS is %q, and %q is no name of a channel: give a comma-separated list such as candidate-v1,stable-v1",
				strings.Join(made.channels, ","), channel)
		}
	}
	if !slices.Contains(made.channels, made.defaultChannel) {
		return release{}, fmt.Errorf("DEFAULT_CHANNEL is %q, which is not among CHANNELS, %q: give one of them",
			made.defaultChannel, strings.Join(made.channels, ","))
	}
	return made, nil
}

// parseVersion takes what can be the version of a bundle. The bundle's name has it, and labels have the name: they allow
// no build metadata and no upper case, and 63 characters at most.
func parseVersion(variable, text string) (semver.Version, error) {
	version, err := semver.Parse(text)
	if err != nil {
		return semver.Version{}, fmt.Errorf("%s is %q, which is no semantic version: give one such as 0.1.0, without a v", variable, text)
	}
	name := bundleName(version)
	if len(validation.IsDNS1123Subdomain(name)) > 0 || len(validation.IsValidLabelValue(name)) > 0 {
		return semver.Version{}, fmt.Errorf("%s is %q, which makes a bundle of the name %q: leave out build metadata (+…) and upper case, and stay within 63 characters",
			variable, text, name)
	}
	return version, nil
}

func bundleName(version semver.Version) string {
	return packageName + ".v" + version.String()
}

// skipRange are the versions that may be upgraded to this one in a single step: those since the first patch version of
// the previous one's minor version. It has a lower bound, since nobody tests an upgrade from any version there ever was.
func (r release) skipRange() string {
	first := semver.Version{Major: r.previous.Major, Minor: r.previous.Minor}
	if r.previous.LT(first) { // a pre-release
		first = *r.previous
	}
	return fmt.Sprintf(">=%s <%s", first, r.version)
}
