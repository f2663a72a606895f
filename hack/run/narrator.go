// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/example-inc/memcached-operator/api/v1"
	"github.com/example-inc/memcached-operator/internal/resources"
)

// narrator tells, in lines for a person, what becomes of all Memcacheds.
type narrator struct {
	cluster client.Client
	kubectl string
	// local: the cluster is on this machine, so pods can be reached from here.
	local bool

	told  sets.Set[string]
	state map[client.ObjectKey]string
}

// tell looks once a second until the context ends. A look that fails is told once, and the next one tried.
func (n *narrator) tell(ctx context.Context) {
	n.told, n.state = sets.New[string](), map[client.ObjectKey]string{}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := n.look(ctx); err != nil && ctx.Err() == nil {
			n.once("can't see the cluster: %v", err)
		}
	}, time.Second)
}

func (n *narrator) look(ctx context.Context) error {
	list := &cachev1.MemcachedList{}
	if err := n.cluster.List(ctx, list); err != nil {
		return err
	}
	seen, ready := sets.New[client.ObjectKey](), 0
	for i := range list.Items {
		mc := &list.Items[i]
		seen.Insert(client.ObjectKeyFromObject(mc))
		if err := n.children(ctx, mc); err != nil {
			return err
		}
		if err := n.status(ctx, mc); err != nil {
			return err
		}
		if meta.IsStatusConditionTrue(mc.Status.Conditions, cachev1.ConditionReady) {
			ready++
		}
	}
	for key := range n.state {
		if !seen.Has(key) {
			n.line("Memcached %s is gone", key)
			delete(n.state, key)
		}
	}
	if ready > 0 && ready == len(list.Items) {
		n.once("all is ready; Ctrl-C ends it, or change something and see")
	}
	return nil
}

// children tells of each Deployment and Service when it is there first.
func (n *narrator) children(ctx context.Context, mc *cachev1.Memcached) error {
	for _, child := range []client.Object{&corev1.Service{}, &appsv1.Deployment{}} {
		err := n.cluster.Get(ctx, client.ObjectKeyFromObject(mc), child)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && metav1.IsControlledBy(child, mc) {
			kind := reflect.TypeOf(child).Elem().Name()
			n.once("%s %s/%s created (uid %.8s)", kind, mc.Namespace, mc.Name, child.GetUID())
		}
	}
	return nil
}

// status tells how many pods are ready whenever that changed, and what to do with them once all are.
func (n *narrator) status(ctx context.Context, mc *cachev1.Memcached) error {
	ready := meta.FindStatusCondition(mc.Status.Conditions, cachev1.ConditionReady)
	if ready == nil || ready.ObservedGeneration != mc.Generation {
		return nil
	}
	key := client.ObjectKeyFromObject(mc)
	state := fmt.Sprintf("READY %d/%d  %s  (%s: %s)", mc.Status.ReadyReplicas, mc.Spec.Size, key, ready.Reason, ready.Message)
	now := state + strings.Join(mc.Status.Nodes, " ")
	if n.state[key] == now {
		return nil
	}
	n.state[key] = now
	n.line("%s", state)
	if ready.Reason != cachev1.ReasonAllPodsReady || len(mc.Status.Nodes) != int(mc.Spec.Size) {
		return nil
	}
	return n.invite(ctx, mc)
}

// invite shows the pods, tries them where they can be reached, and gives a line to talk to one and a line to scale.
func (n *narrator) invite(ctx context.Context, mc *cachev1.Memcached) error {
	pods := &corev1.PodList{}
	err := n.cluster.List(ctx, pods, client.InNamespace(mc.Namespace), client.MatchingLabels(resources.SelectorLabels(mc.Name)))
	if err != nil {
		return err
	}
	pods.Items = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return !slices.Contains(mc.Status.Nodes, pod.Name) })
	var addresses []string
	for _, pod := range pods.Items {
		address := fmt.Sprintf("%s:%d", pod.Status.PodIP, resources.Port)
		addresses = append(addresses, address)
		fmt.Printf("            %s  %s  on node %s\n", pod.Name, address, pod.Spec.NodeName)
	}
	if n.local && len(addresses) > 0 {
		fmt.Printf("            %s\n", roundTrips(addresses))
		host := pods.Items[0].Status.PodIP
		fmt.Printf("  talk to it:  bash -c 'exec 3<>/dev/tcp/%s/%d; printf \"set greeting 0 0 5\\r\\nhello\\r\\nget greeting\\r\\nquit\\r\\n\" >&3; cat <&3'\n",
			host, resources.Port)
	} else {
		fmt.Printf("  talk to it:  %s port-forward -n %s deployment/%s %d, then: telnet localhost %[4]d\n", n.kubectl, mc.Namespace, mc.Name, resources.Port)
	}
	fmt.Printf("  scale it:    KUBECONFIG=%s %s scale -n %s memcached/%s --replicas=%d\n",
		os.Getenv("KUBECONFIG"), n.kubectl, mc.Namespace, mc.Name, mc.Spec.Size+2)
	return nil
}

// roundTrips stores and reads a key at each address, and says how that went.
func roundTrips(addresses []string) string {
	const value = "hello"
	for _, address := range addresses {
		cache := memcache.New(address)
		err := cache.Set(&memcache.Item{Key: "memcached-operator-run", Value: []byte(value), Expiration: 60})
		if err != nil {
			return fmt.Sprintf("storing a key at %s: %v", address, err)
		}
		item, err := cache.Get("memcached-operator-run")
		if err != nil || string(item.Value) != value {
			return fmt.Sprintf("reading the key back from %s: %v", address, err)
		}
		if err = cache.Close(); err != nil {
			return err.Error()
		}
	}
	return fmt.Sprintf("stored a key in each of the %d and read it back", len(addresses))
}

// once tells a line that has not been told yet.
func (n *narrator) once(format string, arguments ...any) {
	if text := fmt.Sprintf(format, arguments...); !n.told.Has(text) {
		n.told.Insert(text)
		n.line("%s", text)
	}
}

func (n *narrator) line(format string, arguments ...any) {
	fmt.Printf("%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, arguments...))
}
