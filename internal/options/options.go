// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Package options reads what the manager is told by its flags and its environment.
package options

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// Environment variables, which a user of OLM sets through a Subscription's spec.config.env.
const (
	// WatchNamespace is a comma-separated list of the namespaces to watch; unset or empty: all.
	WatchNamespace = "WATCH_NAMESPACE"
	// RelatedImageMemcached is the memcached image for resources that don't name one; required.
	RelatedImageMemcached = "RELATED_IMAGE_MEMCACHED"
	// ServiceMonitorNamespace is the manager's own namespace, if it is to keep a ServiceMonitor for its metrics there.
	ServiceMonitorNamespace = "SERVICE_MONITOR_NAMESPACE"
	// LeaseDuration, RenewDeadline and RetryPeriod are defaults for the flags of leader election, such as "137s".
	LeaseDuration = "LEADER_ELECTION_LEASE_DURATION"
	RenewDeadline = "LEADER_ELECTION_RENEW_DEADLINE"
	RetryPeriod   = "LEADER_ELECTION_RETRY_PERIOD"
)

// Options are all that can be told to the manager.
type Options struct {
	Namespaces     []string
	MemcachedImage string
	Concurrency    int
	MetricsAddress string
	MetricsSecure  bool
	// ServiceMonitorNamespace is empty for no ServiceMonitor.
	ServiceMonitorNamespace string
	ProbeAddress            string
	LeaderElection          bool
	// LeaseNamespace is empty for the namespace of the manager's own pod.
	LeaseNamespace string
	LeaseDuration  time.Duration
	RenewDeadline  time.Duration
	RetryPeriod    time.Duration
	Log            zap.Options
}

// Parse reads the arguments, without the program's name, and the environment. The error names what is wrong, the value,
// and what would be right; it is flag.ErrHelp if help was asked for and printed.
func Parse(args []string, getenv func(string) string) (Options, error) {
	var options Options
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are returned
	flags.IntVar(&options.Concurrency, "max-concurrent-reconciles", 16,
		"The number of Memcacheds that are worked on at the same time.")
	flags.StringVar(&options.MetricsAddress, "metrics-bind-address", "127.0.0.1:8080",
		"The address that metrics are served on; 0 for none.")
	flags.BoolVar(&options.MetricsSecure, "metrics-secure", false,
		"Serve metrics over TLS, to those whom the API server authenticates and authorizes.")
	flags.StringVar(&options.ProbeAddress, "health-probe-bind-address", ":8081",
		"The address that /healthz and /readyz are served on; 0 for none.")
	flags.BoolVar(&options.LeaderElection, "leader-elect", false,
		"Work only while holding the leader's Lease, so that replicas don't work against each other.")
	flags.StringVar(&options.LeaseNamespace, "leader-election-namespace", "",
		"The namespace of the leader's Lease. Default: that of the manager's pod; needed where it runs outside a cluster.")
	options.Log.BindFlags(flags)

	var envErr error // told after what the flags have to say, which may be a call for help
	// The defaults outlast an API server that is away for a minute: OpenShift's figures for operators.
	for _, duration := range []struct {
		target   *time.Duration
		flag     string
		variable string
		value    time.Duration
		usage    string
	}{
		{&options.LeaseDuration, "leader-election-lease-duration", LeaseDuration, 137 * time.Second, "How long a leader that went silent is waited for."},
		{&options.RenewDeadline, "leader-election-renew-deadline", RenewDeadline, 107 * time.Second, "How long the leader tries to renew before it gives up."},
		{&options.RetryPeriod, "leader-election-retry-period", RetryPeriod, 26 * time.Second, "How long to wait between tries to get or renew the Lease."},
	} {
		if text := getenv(duration.variable); text != "" {
			value, err := time.ParseDuration(text)
			if err != nil {
				envErr = fmt.Errorf("environment variable %s is %q: give a duration such as %q", duration.variable, text, duration.value)
			} else {
				duration.value = value
			}
		}
		flags.DurationVar(duration.target, duration.flag, duration.value,
			fmt.Sprintf("%s Environment variable: %s.", duration.usage, duration.variable))
	}

	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(os.Stdout)
		flags.PrintDefaults()
		fmt.Printf("Environment:\n  %s\n\tThe memcached image for resources that don't name one. Required.\n"+
			"  %s\n\tThe namespaces to watch, comma-separated; none: all.\n"+
			"  %s\n\tThe manager's own namespace, to keep a ServiceMonitor for its metrics in; none: keep none.\n",
			RelatedImageMemcached, WatchNamespace, ServiceMonitorNamespace)
	}
	if err = cmp.Or(err, envErr); err != nil {
		return Options{}, err
	}
	if flags.NArg() > 0 {
		return Options{}, fmt.Errorf("argument %q is not a flag: see --help", flags.Arg(0))
	}
	options.Namespaces = namespaces(getenv(WatchNamespace))
	options.MemcachedImage = getenv(RelatedImageMemcached)
	options.ServiceMonitorNamespace = getenv(ServiceMonitorNamespace)
	return options, options.validate()
}

// namespaces splits a comma-separated list.
func namespaces(list string) []string {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (o Options) validate() error {
	if o.MemcachedImage == "" {
		return fmt.Errorf("environment variable %s is empty: name the memcached image for resources that don't name one, "+
			"such as docker.io/library/memcached:1.6.45", RelatedImageMemcached)
	}
	if strings.ContainsFunc(o.MemcachedImage, unicode.IsSpace) {
		return fmt.Errorf("environment variable %s is %q: an image reference has no white space", RelatedImageMemcached, o.MemcachedImage)
	}
	for _, name := range o.Namespaces {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return fmt.Errorf("environment variable %s holds %q, which is no name of a namespace: %s", WatchNamespace, name, problems[0])
		}
	}
	if o.Concurrency < 1 {
		return fmt.Errorf("flag --max-concurrent-reconciles is %d: give 1 or more", o.Concurrency)
	}
	// What client-go's leader election would panic on, or refuse without naming a flag.
	if o.RetryPeriod <= 0 || float64(o.RenewDeadline) <= 1.2*float64(o.RetryPeriod) || o.LeaseDuration <= o.RenewDeadline {
		return fmt.Errorf("leader election needs lease duration > renew deadline > 1.2 × retry period > 0, but they are %s, %s and %s",
			o.LeaseDuration, o.RenewDeadline, o.RetryPeriod)
	}
	return nil
}
