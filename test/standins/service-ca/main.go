// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Command service-ca is a stand-in, for tests only. It takes the place of OpenShift's service CA operator on clusters
// that have none: Services get the certificates, and ConfigMaps the authority, that their annotations ask for.
//
// What it writes looks like what the original writes, as far as somebody who annotates can see. It knows the annotations
// of service.beta.openshift.io alone, not their older twins in service.alpha.openshift.io, and no other kinds. It renews
// what was damaged, but neither the authority nor what expires: nothing here gets that old. And it doesn't count failures
// to give up at the tenth.
package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func main() {
	ctrl.SetLogger(klog.Background())
	cluster, err := ctrl.GetConfig()
	if err == nil {
		err = run(ctrl.SetupSignalHandler(), cluster)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "service-ca:", err)
		os.Exit(1)
	}
}

// run returns when the context ends, or with the error that ends it.
func run(ctx context.Context, cluster *rest.Config) error {
	mgr, err := ctrl.NewManager(cluster, ctrl.Options{
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // tests run it twice in one process
	})
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	uncached, err := client.New(cluster, client.Options{HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	ca, err := keptAuthority(ctx, uncached)
	if err != nil {
		return err
	}

	services := &serviceReconciler{Client: mgr.GetClient(), authority: ca}
	if err := ctrl.NewControllerManagedBy(mgr).
		For(&corev1.Service{}).
		Owns(&corev1.Secret{}, builder.MatchEveryOwner).
		Complete(reconcile.AsReconciler(mgr.GetClient(), services)); err != nil {
		return fmt.Errorf("setting up the controller of Services: %w", err)
	}
	configMaps := &configMapReconciler{Client: mgr.GetClient(), authority: ca}
	if err := ctrl.NewControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), configMaps)); err != nil {
		return fmt.Errorf("setting up the controller of ConfigMaps: %w", err)
	}
	return mgr.Start(ctx)
}
