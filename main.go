// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// The manager is the operator: it watches Memcacheds and runs caches for each.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/controllers"
	"github.com/example-inc/memcached-operator/internal/monitoring"
	"github.com/example-inc/memcached-operator/internal/options"
	"github.com/example-inc/memcached-operator/internal/platform"
)

// version is stamped by the linker.
var version = "unknown"

// settle is how long the events of children gather. It delays a status by that much, and turns the dozens of events of a
// rollout into a few status writes.
const settle = time.Second

// gracefulShutdown leaves time to give up the leader's Lease within the 10 s that the pod has to end.
const gracefulShutdown = 8 * time.Second

func main() {
	given, err := options.Parse(os.Args[1:], os.Getenv)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(2)
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&given.Log)))
	klog.SetLogger(ctrl.Log) // what client-go has to say
	if err := run(ctrl.SetupSignalHandler(), given); err != nil {
		ctrl.Log.Error(err, "Stopped")
		os.Exit(1)
	}
}

// run is the life of the process: it returns when the context ends, or with the error that ends it.
func run(ctx context.Context, given options.Options) error {
	ctrl.Log.Info("Starting", "version", version, "namespaces", given.Namespaces, "memcachedImage", given.MemcachedImage)
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding a cluster: %w", err)
	}
	mgr, err := ctrl.NewManager(config, managerOptions(given))
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}

	groups, err := discovery.NewDiscoveryClientForConfigAndClient(config, mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making the discovery client: %w", err)
	}
	on, err := platform.Detect(groups, mgr.GetRESTMapper(), given.MemcachedImage)
	if err != nil {
		return err
	}
	reconciler := &controllers.MemcachedReconciler{
		Client:      mgr.GetClient(),
		APIReader:   mgr.GetAPIReader(),
		Events:      mgr.GetEventRecorder(controllers.Name),
		Platform:    on,
		Concurrency: given.Concurrency,
		Settle:      settle,
	}
	upgradeable := &controllers.UpgradeableReconciler{Reader: mgr.GetClient(), Settle: settle}
	if err := errors.Join(
		reconciler.SetupWithManager(mgr),
		monitoring.SetupWithManager(mgr, controllers.Name, given.ServiceMonitorNamespace),
		upgradeable.SetupWithManager(mgr),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("ping", healthz.Ping),
	); err != nil {
		return fmt.Errorf("setting up the manager: %w", err)
	}
	return mgr.Start(ctx)
}

func managerOptions(given options.Options) ctrl.Options {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(cachev1.AddToScheme(scheme))

	metrics := metricsserver.Options{BindAddress: given.MetricsAddress, SecureServing: given.MetricsSecure}
	if given.MetricsSecure {
		metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return ctrl.Options{
		Scheme:                        scheme,
		Cache:                         controllers.CacheOptions(given.Namespaces),
		Metrics:                       metrics,
		HealthProbeBindAddress:        given.ProbeAddress,
		LeaderElection:                given.LeaderElection,
		LeaderElectionID:              controllers.Name + "." + cachev1.GroupVersion.Group,
		LeaderElectionNamespace:       given.LeaseNamespace,
		LeaderElectionReleaseOnCancel: true, // safe: the process ends as soon as the manager has stopped
		LeaseDuration:                 &given.LeaseDuration,
		RenewDeadline:                 &given.RenewDeadline,
		RetryPeriod:                   &given.RetryPeriod,
		GracefulShutdownTimeout:       new(gracefulShutdown),
	}
}
