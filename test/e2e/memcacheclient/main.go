// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

// Command memcacheclient is what an application in the cluster does with its caches. The e2e tests run it in a pod, and
// execute its other commands there.
package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

const usage = `Usage: memcacheclient COMMAND

  serve                        do nothing until SIGTERM
  lookup NAME                  print the addresses that DNS has for NAME, sorted; nothing if it has none
  roundtrip HOST:PORT…         store a value on each and read it back; a HOST that is a name stands for all its addresses
  set KEY VALUE HOST:PORT…     store a value on each
  get KEY HOST:PORT…           print the value on each, "(none)" where there is none
  traffic HOST:PORT…           store 1000 keys, spread over all, and read them again and again until standard input
                               ends; then print how many reads there were, how many found nothing, and how many failed
  httpget URL [TOKENFILE]      print the status and the body; any certificate will do
`

// timeout of one request. Long, since the machine that tests run on may be busy.
const timeout = 10 * time.Second

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "memcacheclient: %v\n", err)
		os.Exit(1)
	}
}

func run(command string, args []string) error {
	switch {
	case command == "serve" && len(args) == 0:
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		<-ctx.Done()
		return nil
	case command == "lookup" && len(args) == 1:
		return lookup(args[0])
	case command == "roundtrip" && len(args) > 0:
		return onEach(args, roundtrip)
	case command == "set" && len(args) > 2:
		return onEach(args[2:], func(address string) error {
			return open(address).Set(&memcache.Item{Key: args[0], Value: []byte(args[1])})
		})
	case command == "get" && len(args) > 1:
		return onEach(args[1:], func(address string) error { return get(address, args[0]) })
	case command == "traffic" && len(args) > 0:
		return traffic(args, os.Stdin)
	case command == "httpget" && (len(args) == 1 || len(args) == 2):
		return httpGet(args[0], args[1:]...)
	}
	return fmt.Errorf("can't do %q with %q\n%s", command, args, usage)
}

func lookup(name string) error {
	addresses, err := net.LookupHost(name)
	if failed := new(net.DNSError); errors.As(err, &failed) && failed.IsNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	slices.Sort(addresses)
	for _, address := range addresses {
		fmt.Println(address)
	}
	return nil
}

// onEach goes on after an error, so that all that is wrong is seen.
func onEach(addresses []string, do func(address string) error) error {
	var errs []error
	for _, address := range addresses {
		if err := do(address); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", address, err))
		}
	}
	return errors.Join(errs...)
}

func open(address string) *memcache.Client {
	client := memcache.New(address)
	client.Timeout = timeout
	return client
}

// roundtrip resolves the address as clients of a headless Service do.
func roundtrip(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	ips, err := net.LookupHost(host)
	if err != nil {
		return err
	}
	servers := make([]string, 0, len(ips))
	for _, ip := range ips {
		servers = append(servers, net.JoinHostPort(ip, port))
	}
	return onEach(servers, func(server string) error {
		key, value := "roundtrip-"+rand.Text(), rand.Text()
		client := open(server)
		if err := client.Set(&memcache.Item{Key: key, Value: []byte(value)}); err != nil {
			return fmt.Errorf("storing: %w", err)
		}
		item, err := client.Get(key)
		if err != nil {
			return fmt.Errorf("reading: %w", err)
		}
		if string(item.Value) != value {
			return fmt.Errorf("stored %q, read %q", value, item.Value)
		}
		fmt.Printf("stored and read on %s\n", server)
		return nil
	})
}

func get(address, key string) error {
	item, err := open(address).Get(key)
	if errors.Is(err, memcache.ErrCacheMiss) {
		fmt.Println("(none)")
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", item.Value)
	return nil
}

// pause between two requests of traffic: 200 a second, as of one busy process of an application.
const pause = 5 * time.Millisecond

// traffic is an application that has its whole session store in the caches, over connections that it keeps.
func traffic(addresses []string, untilEnd io.Reader) error {
	client := memcache.New(addresses...)
	client.Timeout = timeout
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprintf("session-%d", i)
		if err := client.Set(&memcache.Item{Key: keys[i], Value: []byte(keys[i])}); err != nil {
			return fmt.Errorf("storing: %w", err)
		}
	}
	fmt.Println("stored")

	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, untilEnd)
		ended <- err
	}()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	reads, misses, failures := 0, 0, 0
	for {
		select {
		case err := <-ended:
			fmt.Printf("%d reads, %d misses, %d failures\n", reads, misses, failures)
			return err
		case <-tick.C:
		}
		item, err := client.Get(keys[reads%len(keys)])
		reads++
		switch {
		case errors.Is(err, memcache.ErrCacheMiss):
			misses++
		case err != nil || string(item.Value) != item.Key:
			failures++
			fmt.Printf("%s: %v\n", time.Now().Format(time.TimeOnly), err)
		}
	}
}

func httpGet(url string, tokenFile ...string) error {
	request, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	if len(tokenFile) > 0 {
		token, readErr := os.ReadFile(tokenFile[0])
		if readErr != nil {
			return readErr
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	client := &http.Client{
		Timeout:   timeout,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	fmt.Println(response.Status)
	_, err = io.Copy(os.Stdout, response.Body)
	return errors.Join(err, response.Body.Close())
}
