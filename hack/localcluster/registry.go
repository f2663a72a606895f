// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux

package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// registryCommand is the component that serves the node's images.
const registryCommand = "registry"

func serveRegistry() error {
	if err := os.MkdirAll(registryDir, 0o755); err != nil {
		return fmt.Errorf("making the registry's folder: %w", err)
	}
	images := registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(registryDir)))
	server := &http.Server{
		Addr: registryAddress, Handler: underUpstreamName(images), ReadHeaderTimeout: 10 * time.Second,
		// It takes one upload after another. With HTTP/2 the waiting ones fill the window that they share with the one that
		// is their turn, and all stand still.
		Protocols: new(http.Protocols),
	}
	server.Protocols.SetHTTP1(true)
	return fmt.Errorf("serving images: %w", server.ListenAndServeTLS(pkiDir+"/serving.crt", pkiDir+"/serving.key"))
}

// underUpstreamName keeps the images of different upstream registries apart: containerd, when it asks a mirror, says in
// the query which registry it means, and what it asks for is here under that registry's name. Only this registry itself has
// no other name.
func underUpstreamName(images http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upstream := r.URL.Query().Get("ns")
		if repository, found := strings.CutPrefix(r.URL.Path, "/v2/"); found && repository != "" && upstream != "" && upstream != registryAddress {
			r.URL.Path = "/v2/" + upstream + "/" + repository
		}
		images.ServeHTTP(w, r)
	})
}
