// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

//go:build linux

package main

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed config
var configTemplates embed.FS

// configFiles are written to the state folder under these paths, from the template
// that has the file's name.
var configFiles = []string{
	"config/audit-policy.yaml",
	"config/cni/10-ptp.conflist",
	"config/containerd.toml",
	"config/kube-proxy.yaml",
	"config/kubelet.yaml",
	"config/registries/_default/hosts.toml",
}

const dnsManifest = "config/coredns.yaml"

// configValues is what the templates may refer to.
var configValues = map[string]string{
	"AuthorityFile":     authorityFile,
	"ClusterDomain":     clusterDomain,
	"CgroupName":        cgroupName,
	"ConfigDir":         configDir,
	"ContainerdSocket":  containerdSocket,
	"CoreDNSImage":      coreDNSImage,
	"DNSAddress":        dnsAddress,
	"NodeAddress":       nodeAddress,
	"PauseImage":        pauseImage,
	"PKIDir":            pkiDir,
	"PodCIDR":           podCIDR,
	"PodLogDir":         logDir + "/pods",
	"RegistryAddress":   registryAddress,
	"StateDir":          stateDir,
	"KubeProxyIdentity": kubeconfigOf("kube-proxy"),
}

func renderConfig(path string) ([]byte, error) {
	parsed, err := template.New(filepath.Base(path)).Option("missingkey=error").ParseFS(configTemplates, "config/"+filepath.Base(path))
	if err != nil {
		return nil, fmt.Errorf("reading the template of %s: %w", path, err)
	}
	var content bytes.Buffer
	if err := parsed.Execute(&content, configValues); err != nil {
		return nil, fmt.Errorf("filling in %s: %w", path, err)
	}
	return content.Bytes(), nil
}

func writeConfig() error {
	for _, path := range configFiles {
		content, err := renderConfig(path)
		if err != nil {
			return err
		}
		target := filepath.Join(stateDir, path)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return fmt.Errorf("making a folder: %w", err)
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			return fmt.Errorf("writing a configuration file: %w", err)
		}
	}
	return nil
}
