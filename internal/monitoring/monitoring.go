// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Package monitoring lets Prometheus find the operator's own metrics on OpenShift. It keeps a ServiceMonitor, which no
// manifest can hold, since the name in it that the server's certificate is checked for ends in the namespace that the
// operator is installed into; and the token that Prometheus shows.
package monitoring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Names of what is installed beside the manager. A test in config holds them and the manifests together.
const (
	// Deployment is the manager's own.
	Deployment = "memcached-operator-controller-manager"
	// Service leads to the metrics, by its port of the name Port.
	Service = Deployment + "-metrics-service"
	Port    = "https"
	// CABundle is the ConfigMap whose CAKey the service CA fills with its certificate.
	CABundle = "memcached-operator-metrics-ca"
	CAKey    = "service-ca.crt"
	// Scraper is the service account that Prometheus scrapes as.
	Scraper = "memcached-operator-metrics-scraper"
	// Token is the Secret whose TokenKey holds a token of it.
	Token    = "memcached-operator-metrics-token"
	TokenKey = "token"
	// ServiceMonitor is the one that is kept.
	ServiceMonitor = Deployment + "-metrics"
)

// Labels select the metrics Service. All of them: operators that share a namespace often have the second in common.
func Labels() map[string]string {
	return map[string]string{
		"app.kubernetes.io/name": "memcached-operator",
		"control-plane":          "controller-manager",
	}
}

// keeper keeps the ServiceMonitor and the token.
type keeper struct {
	client    client.Client
	log       logr.Logger
	namespace string
	// period is how often it looks. It doesn't watch: that would take more rights, and a kind that isn't there yet can't
	// be watched.
	period time.Duration
}

// SetupWithManager lets the manager, while it leads, keep a ServiceMonitor in its own namespace and sign its writes as
// owner. No namespace means none: the operator runs outside of the cluster, or somebody else sees to its monitoring.
func SetupWithManager(mgr manager.Manager, owner, namespace string) error {
	if namespace == "" {
		return nil
	}
	// Past the cache, which may not hold this namespace, and holds nothing of the operator itself.
	uncached, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return fmt.Errorf("making a client for the ServiceMonitor: %w", err)
	}
	return mgr.Add(&keeper{
		client:    client.WithFieldOwner(uncached, owner),
		log:       mgr.GetLogger().WithName("monitoring").WithValues("namespace", namespace),
		namespace: namespace,
		period:    time.Minute,
	})
}

// NeedLeaderElection is true, so that replicas don't renew each other's token.
func (k *keeper) NeedLeaderElection() bool { return true }

// Start keeps them until the context ends. Nobody's caches depend on it, so whatever goes wrong is told, once, and tried
// again, and never ends the manager.
func (k *keeper) Start(ctx context.Context) error {
	var told string
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		err := k.keep(ctx)
		switch {
		case err == nil:
			told = ""
		case err.Error() != told && ctx.Err() == nil:
			told = err.Error()
			k.log.Error(err, "The operator's metrics may not be scraped", "retryEvery", k.period.String())
		}
	}, k.period)
	return nil
}

// keep does nothing, and finds nothing wrong, where the API server doesn't know ServiceMonitors. It may one day.
func (k *keeper) keep(ctx context.Context) error {
	if _, err := k.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		if meta.IsNoMatchError(err) {
			return nil
		}
		return fmt.Errorf("asking the API server for the kind ServiceMonitor: %w", err)
	}
	return errors.Join(k.keepToken(ctx), k.keepServiceMonitor(ctx))
}
