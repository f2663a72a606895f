// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build images

package images

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// root of the repository.
const root = "../.."

// makefile runs targets of the Makefile, as a user does: with nothing of the make that runs this test.
func makefile(t *testing.T, environment []string, args ...string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), "make", append([]string{"-C", root}, args...)...)
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "MAKE") })
	command.Env = append(command.Env, environment...)
	return command
}

func succeed(t *testing.T, command *exec.Cmd) string {
	t.Helper()
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
	return string(output)
}

// containerTools puts a podman and a docker before those of the machine. Their engines answer, or don't.
func containerTools(t *testing.T, podmanAnswers, dockerAnswers bool) []string {
	t.Helper()
	folder := t.TempDir()
	for name, answers := range map[string]bool{"podman": podmanAnswers, "docker": dockerAnswers} {
		script := "#!/bin/sh\n" + strconv.FormatBool(answers) + " && echo " + name + " does: \"$@\"\n"
		must(t, os.WriteFile(filepath.Join(folder, name), []byte(script), 0o755))
	}
	return []string{"PATH=" + folder + ":" + os.Getenv("PATH")}
}

func TestMakeTakesTheContainerToolThatAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		podmanAnswers, dockerAnswers bool
		want                         string
	}{
		"podman":  {true, false, "podman does: push example.com/never-built:v1"},
		"docker":  {false, true, "docker does: push example.com/never-built:v1"},
		"both":    {true, true, "podman does: push example.com/never-built:v1"},
		"neither": {false, false, "image: example.com/never-built:v1 isn't in "},
	} {
		t.Run(name, func(t *testing.T) {
			environment := containerTools(t, test.podmanAnswers, test.dockerAnswers)
			output, _ := makefile(t, environment, "bundle-push", "BUNDLE_IMG=example.com/never-built:v1").CombinedOutput()
			if !strings.Contains(string(output), test.want) {
				t.Errorf("%q isn't in:\n%s", test.want, output)
			}
		})
	}
}

func TestMakeSaysThatTheManagersImageNeedsATool(t *testing.T) {
	output, err := makefile(t, containerTools(t, false, false), "docker-build").CombinedOutput()
	if want := "this tool only copies files"; err == nil || !strings.Contains(string(output), want) {
		t.Errorf("%q isn't in: %v\n%s", want, err, output)
	}
}

func TestACatalogWithoutItsTemplateIsToldInOneLine(t *testing.T) {
	output, err := exec.CommandContext(t.Context(), filepath.Join(root, "hack/catalog.sh"), "opm", "nowhere.yaml", "0.1.0", "example.com/a:v1").CombinedOutput()
	said := string(output)
	if err == nil || !strings.Contains(said, `CATALOG_TEMPLATE is "nowhere.yaml"`) || strings.Count(said, "\n") != 1 {
		t.Errorf("%v: %q", err, said)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
