// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package resources

import (
	"cmp"
	"strconv"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

// What the API server writes into a spec that leaves them out, which are memcached's own defaults. They are known here too,
// for the API server may still have the CRD of an earlier version, without these fields.
const (
	defaultMemory         = 64 * mebibyte
	defaultMaxConnections = 1024
	defaultThreads        = 4
	defaultMaxItemSize    = 1 * mebibyte
)

// command has flag and value as separate words: memcached reads "-m=64" as 0.
func command(mc *cachev1.Memcached) []string {
	return append([]string{
		"memcached",
		"-m", strconv.FormatInt(itemMemory(mc)/mebibyte, 10),
		"-c", strconv.Itoa(int(maxConnections(mc))),
		"-t", strconv.Itoa(int(cmp.Or(mc.Spec.Threads, defaultThreads))),
		"-I", strconv.FormatInt(cmp.Or(mc.Spec.MaxItemSize.Value(), defaultMaxItemSize)/kibibyte, 10) + "k",
		"-o", "modern",
		"-v",
	}, mc.Spec.ExtraArgs...)
}

// itemMemory is spec.memory in bytes.
func itemMemory(mc *cachev1.Memcached) int64 {
	return cmp.Or(mc.Spec.Memory.Value(), defaultMemory)
}

func maxConnections(mc *cachev1.Memcached) int32 {
	return cmp.Or(mc.Spec.MaxConnections, defaultMaxConnections)
}
