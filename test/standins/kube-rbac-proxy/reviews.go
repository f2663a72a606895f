// SPDX-License-Identifier: Apache-2.0
// Copyright The Memcached Operator Authors

package main

import (
	"fmt"
	"net/http"
	"path"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// verbs that the original asks for. Any other method has none, and nobody but an administrator may do that.
var verbs = map[string]string{
	http.MethodGet:    "get",
	http.MethodPost:   "create",
	http.MethodPut:    "update",
	http.MethodPatch:  "patch",
	http.MethodDelete: "delete",
}

// reviews asks the API server who sends a request, and whether they may. Answers are remembered as long as in the
// original.
type reviews struct {
	authenticator authenticator.Request
	authorizer    authorizer.Authorizer
}

func newReviews(config *rest.Config) (*reviews, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client for reviews: %w", err)
	}
	backoff := webhook.DefaultRetryBackoffWithInitialDelay(500 * time.Millisecond)
	authenticatorConfig := authenticatorfactory.DelegatingAuthenticatorConfig{
		TokenAccessReviewClient: client.AuthenticationV1(),
		CacheTTL:                2 * time.Minute,
		WebhookRetryBackoff:     &backoff,
	}
	authorizerConfig := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(),
		AllowCacheTTL:             5 * time.Minute,
		DenyCacheTTL:              30 * time.Second,
		WebhookRetryBackoff:       &backoff,
	}
	r := &reviews{}
	if r.authenticator, _, err = authenticatorConfig.New(); err != nil {
		return nil, fmt.Errorf("making the authenticator: %w", err)
	}
	if r.authorizer, err = authorizerConfig.New(); err != nil {
		return nil, fmt.Errorf("making the authorizer: %w", err)
	}
	return r, nil
}

// guard lets through what is authenticated and authorized. controller-runtime has the same as a filter for metrics, but
// that one answers 500 to a wrong token, and the original 401.
func (r *reviews) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		sender, authenticated, err := r.authenticator.AuthenticateRequest(request)
		if err != nil {
			klog.ErrorS(err, "Could not authenticate a request")
		}
		if !authenticated {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		decision, reason, err := r.authorizer.Authorize(request.Context(), authorizer.AttributesRecord{
			User: sender.User,
			Verb: verbs[request.Method],
			Path: request.URL.Path,
		})
		switch {
		case err != nil:
			klog.ErrorS(err, "Could not authorize a request", "user", sender.User.GetName())
			http.Error(w, "Authorization error", http.StatusInternalServerError)
		case decision != authorizer.DecisionAllow:
			klog.InfoS("Refused a request", "user", sender.User.GetName(), "method", request.Method, "reason", reason)
			http.Error(w, "Forbidden", http.StatusForbidden)
		default:
			next.ServeHTTP(w, request)
		}
	})
}

// allowPaths hides all paths that match none of the patterns.
func allowPaths(patterns []string, next http.Handler) http.Handler {
	if len(patterns) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if path.Clean(request.URL.Path) != request.URL.Path {
			http.Error(w, "Bad Request", http.StatusBadRequest)
			return
		}
		for _, pattern := range patterns {
			if matches, _ := path.Match(pattern, request.URL.Path); matches { // parse has seen that they are well formed
				next.ServeHTTP(w, request)
				return
			}
		}
		http.NotFound(w, request)
	})
}
