// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package monitoring

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

var kind = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}

// spec tells Prometheus what to scrape, and how. Certificate and token are named as objects and not as files: OpenShift's
// Prometheus for users' projects refuses a ServiceMonitor that reads files of its pod.
func spec(namespace string) map[string]any {
	selector := map[string]any{}
	for key, value := range Labels() {
		selector[key] = value
	}
	return map[string]any{
		"selector": map[string]any{"matchLabels": selector},
		"endpoints": []any{map[string]any{
			"port":   Port,
			"scheme": "https",
			"tlsConfig": map[string]any{
				"serverName": Service + "." + namespace + ".svc",
				"ca":         map[string]any{"configMap": map[string]any{"name": CABundle, "key": CAKey}},
			},
			"authorization": map[string]any{
				"type":        "Bearer",
				"credentials": map[string]any{"name": Token, "key": TokenKey},
			},
		}},
	}
}

// keepServiceMonitor makes the ServiceMonitor as it should be. Its spec is ours as a whole; labels may be added, since
// some Prometheus selects by them. A stranger of the same name is left alone.
func (k *keeper) keepServiceMonitor(ctx context.Context) error {
	// The owner, so that the ServiceMonitor goes when the operator is uninstalled.
	deployment := &appsv1.Deployment{}
	if err := k.client.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: Deployment}, deployment); err != nil {
		return fmt.Errorf("reading the operator's own Deployment %q: %w", Deployment, err)
	}

	monitor := &unstructured.Unstructured{}
	monitor.SetGroupVersionKind(kind)
	monitor.SetNamespace(k.namespace)
	monitor.SetName(ServiceMonitor)
	var before string
	result, err := controllerutil.CreateOrPatch(ctx, k.client, monitor, func() error {
		before = monitor.GetResourceVersion()
		if monitor.GetUID() == "" { // it isn't there yet
			// To block the Deployment's deletion would take rights on its finalizers.
			err := controllerutil.SetControllerReference(deployment, monitor, k.client.Scheme(), controllerutil.WithBlockOwnerDeletion(false))
			if err != nil {
				return err
			}
		} else if !metav1.IsControlledBy(monitor, deployment) {
			return errors.New("it isn't this operator's: delete it, and it is made anew")
		}
		monitor.SetLabels(labels.Merge(monitor.GetLabels(), Labels()))
		monitor.Object["spec"] = spec(k.namespace)
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil // the kind went away
	}
	if err != nil {
		return fmt.Errorf("keeping ServiceMonitor %q: %w", ServiceMonitor, err)
	}
	// Where the schema adds to the spec or takes away, each look writes what changes nothing.
	if monitor.GetResourceVersion() != before {
		k.log.Info("Wrote ServiceMonitor", "name", ServiceMonitor, "result", result)
	}
	return nil
}
