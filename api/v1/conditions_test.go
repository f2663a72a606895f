// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package v1

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestEveryConditionAndReasonIsInTheDocs(t *testing.T) {
	source, err := os.ReadFile("conditions.go")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile(filepath.Join("..", "..", "docs", "conditions.md"))
	if err != nil {
		t.Fatal(err)
	}
	constants := regexp.MustCompile(`(?m)^\t(Condition|Reason)\w+ += "(\w+)"$`).FindAllStringSubmatch(string(source), -1)
	if len(constants) < 10 {
		t.Fatalf("found only %d constants", len(constants))
	}
	for _, constant := range constants {
		want := "`" + constant[2] + "`"
		if constant[1] == "Condition" {
			want = "\n## " + constant[2] + "\n"
		}
		if !strings.Contains(string(docs), want) {
			t.Errorf("docs/conditions.md says nothing of %s", constant[2])
		}
	}
}
