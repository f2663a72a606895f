// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Run is behind `make run`: it installs the CRD and the samples on the cluster that KUBECONFIG names, runs the operator as
// a process of this machine, and tells what becomes of the samples until it is interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
)

// local is set by hack/localcluster for what it runs.
const local = "LOCALCLUSTER_REGISTRY"

func main() {
	manager := flag.String("manager", filepath.Join("bin", "manager"), "the operator to run")
	kubectl := flag.String("kubectl", filepath.Join("bin", "kubectl"), "the kubectl to install the CRD and the samples with")
	log := flag.String("log", filepath.Join("bin", "run.log"), "the file that the operator logs to")
	flag.Parse()

	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *manager, *kubectl, *log)
	interrupted := ctx.Err() != nil
	cancel()
	if err != nil && !interrupted {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

// run returns when the context ends, without an error, or when the operator ends by itself.
func run(ctx context.Context, manager, kubectl, log string) error {
	for _, arguments := range [][]string{
		{"apply", "--server-side", "-k", "config/crd"},
		{"wait", "--for=condition=Established", "crd/memcacheds.cache.example.com"},
		{"apply", "--server-side", "-k", "config/samples"},
	} {
		if err := command(ctx, kubectl, arguments...).Run(); err != nil {
			return fmt.Errorf("%s %s: %w", kubectl, strings.Join(arguments, " "), err)
		}
	}
	cluster, err := connect()
	if err != nil {
		return err
	}
	ended, err := startOperator(ctx, manager, log)
	if err != nil {
		return err
	}
	fmt.Printf("the operator runs from this working tree and logs to %s\n", log)

	telling, cancel := context.WithCancel(ctx)
	defer cancel()
	teller := &narrator{cluster: cluster, kubectl: kubectl, local: os.Getenv(local) != ""}
	go teller.tell(telling)

	err = <-ended
	if ctx.Err() != nil {
		fmt.Println("\nthe operator has stopped")
		return nil
	}
	return fmt.Errorf("the operator ended by itself (%w); the end of its log:\n%s", err, tail(log))
}

func connect() (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), cachev1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	cluster, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return cluster, nil
}
