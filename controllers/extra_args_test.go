// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package controllers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// What memcached is started with must neither undo what the operator sets, nor make memcached exit. The API server says
// why it refuses an argument.
func TestTheAPIServerRefusesArgumentsThatDoHarm(t *testing.T) {
	t.Parallel()
	const (
		allowed  = "extraArgs takes the flags -M, -C"
		short    = "short form"
		fields   = "are what spec.memory, spec.maxConnections"
		listens  = "the operator chooses where memcached listens"
		ends     = "memcached ends"
		host     = "the container may not"
		files    = "the container doesn't have"
		clients  = "every client"
		separate = "separate items"
		lonely   = "a flag without its value, or a value without its flag"
		values   = "a value is not allowed"
	)
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"-p", "1"}, listens},
		{[]string{"-p1"}, listens},
		{[]string{"-vp11212"}, listens},
		{[]string{"-Mp1"}, allowed},
		{[]string{"--port=1"}, short},
		{[]string{"--port", "1"}, short},
		{[]string{"--memo", "5"}, short},
		{[]string{"--memo=5"}, short},
		{[]string{"--disable-evictions"}, short},
		{[]string{"--"}, short},
		{[]string{"-"}, allowed},
		{[]string{""}, separate},
		{[]string{"-b 5"}, separate},
		{[]string{"-b\t5"}, separate},
		{[]string{"-b\n5"}, separate},
		{[]string{"-é"}, separate},
		{[]string{"-m", "5"}, fields},
		{[]string{"-m5"}, fields},
		{[]string{"-c", "5"}, fields},
		{[]string{"-t", "5"}, fields},
		{[]string{"-I", "5m"}, fields},
		{[]string{"-I5m"}, fields},
		{[]string{"-l", "127.0.0.1"}, listens},
		{[]string{"-U", "11211"}, listens},
		{[]string{"-s", "/tmp/socket"}, listens},
		{[]string{"-a", "700"}, listens},
		{[]string{"-v"}, listens},
		{[]string{"-vv"}, listens},
		{[]string{"-h"}, ends},
		{[]string{"-i"}, ends},
		{[]string{"-V"}, ends},
		{[]string{"-d"}, ends},
		{[]string{"-P", "/tmp/pid"}, ends},
		{[]string{"-u", "root"}, host},
		{[]string{"-r"}, host},
		{[]string{"-k"}, host},
		{[]string{"-L"}, host},
		{[]string{"-e", "/tmp/file"}, files},
		{[]string{"-S"}, files},
		{[]string{"-Y", "/tmp/file"}, files},
		{[]string{"-Z"}, files},
		{[]string{"-N", "1"}, files},
		{[]string{"-A"}, clients},
		{[]string{"-D", ":"}, clients},
		{[]string{"-x"}, allowed},
		{[]string{"-MC"}, allowed},
		{[]string{"-M", "-b5"}, allowed},
		{[]string{"stray"}, lonely},
		{[]string{"-M", "1"}, lonely},
		{[]string{"-b"}, lonely},
		{[]string{"-b", "-M"}, lonely},
		{[]string{"-b", "1", "2"}, lonely},
		{[]string{"-b", "0"}, values},
		{[]string{"-b", "05"}, values},
		{[]string{"-b", "100000"}, values},
		{[]string{"-b", "5x"}, values},
		{[]string{"-b", "=5"}, values},
		{[]string{"-R", "0"}, values},
		{[]string{"-R", "many"}, values},
		{[]string{"-n", "0"}, values},
		{[]string{"-n", "10000"}, values},
		{[]string{"-f", "1"}, values},
		{[]string{"-f", "1.0"}, values},
		{[]string{"-f", "1.04"}, values},
		{[]string{"-f", "5"}, values},
		{[]string{"-f", "1,25"}, values},
		{[]string{"-f", "nan"}, values},
		{[]string{"-B", "binary"}, values},
		{[]string{"-B", "asciiauto"}, values},
		{[]string{"-o", "slab_chunk_max=100k"}, values},
		{[]string{"-o", "idle_timeout"}, values},
		{[]string{"-o", "idle_timeout=-1"}, values},
		{[]string{"-o", "idle_timeout=100000"}, values},
		{[]string{"-o", "idle_timeout=1,"}, values},
		{[]string{"-o", ",idle_timeout=1"}, values},
		{[]string{"-o", "idle_timeout=1,no_lru_maintainer"}, values},
		{[]string{"-o", "temporary_ttl=0"}, values},
		{[]string{"-o", "hot_lru_pct=41"}, values},
		{[]string{"-o", "warm_lru_pct=0"}, values},
		{[]string{"-o", "slab_automove=3"}, values},
		{[]string{"-o", "hash_algorithm=xxh3"}, values},
		{[]string{"-o", "hashpower=32"}, values},
		{[]string{"-o", "no_modern"}, values},
		{[]string{"-o", "ext_path=/tmp/file:1G"}, values},
		{[]string{"-f", "1-b", "-b", "99999999"}, values},
		{[]string{"-b", "1", "-b", "0"}, values},
	}
	namespace := newNamespace(t)
	for _, test := range tests {
		err := createRaw(t, namespace, "", withArgs(t, test.args))
		if !apierrors.IsInvalid(err) || strings.Count(err.Error(), "spec.extraArgs") != 1 || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q gave %v, want a refusal for one reason, that says %q", test.args, err, test.want)
		}
	}
}

func TestTheAPIServerTakesHarmlessArguments(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	for _, args := range [][]string{
		{},
		{"-M"},
		{"-M", "-C", "-F", "-X", "-W", "-M"},
		{"-b", "1"},
		{"-b", "99999", "-R", "1", "-R", "99999", "-n", "9999"},
		{"-f", "1.05", "-f", "1.5", "-f", "1.25", "-f", "2", "-f", "4.99"},
		{"-B", "ascii", "-B", "auto"},
		{"-o", "idle_timeout=0"},
		{"-o", "idle_timeout=99999,temporary_ttl=61,lru_crawler_sleep=0", "-M", "-o", "slab_automove=2,hash_algorithm=murmur3"},
		{"-o", "hot_lru_pct=40,warm_lru_pct=40"},
	} {
		if err := createRaw(t, namespace, "", withArgs(t, args)); err != nil {
			t.Errorf("%q gave %v", args, err)
		}
	}
}

// withArgs is a spec in YAML.
func withArgs(t *testing.T, args []string) string {
	t.Helper()
	list, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("{size: 1, extraArgs: %s}", list)
}
