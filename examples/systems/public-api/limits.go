package main

import (
	"cmp"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/httplimit"
)

// limited puts the limits in front of a handler. An endpoint that public-api.yaml names gets the limits of that file,
// and any other endpoint the limits of the environment.
func limited(limits *client.Client, settings *settings, handler http.Handler) (http.Handler, error) {
	proxies, err := httplimit.Trust(strings.FieldsFunc(os.Getenv("TRUSTED_PROXIES"), comma)...)
	if err != nil {
		return nil, err
	}
	customerOf := customers(cmp.Or(os.Getenv("API_KEYS"), "K1=acme,K2=gold:initech"))
	ip, customer := proxies.ByIP(), httplimit.ByUser(customerOf)
	gold := func(r *http.Request) bool { return strings.HasPrefix(customerOf(r), "gold:") }

	// endpoint returns a route with one check: of the endpoint, the address, the API key if the request has one, and
	// the whole service.
	endpoint := func(pattern, policy string, key httplimit.Key) httplimit.Route {
		return httplimit.Route{
			Pattern: pattern, Rule: client.Policy(policy), Key: key,
			Also: []httplimit.Limit{
				{Rule: client.Policy("ip"), Key: ip},
				{Rule: client.Policy("api-key"), Key: customer, Optional: true},
				{Rule: client.Policy("service"), Key: everybody},
			},
			Priority: gold,
		}
	}
	who := httplimit.FirstOf(customer, ip)
	exports := endpoint("GET /api/exports", "exports", everybody)
	exports.Queue = time.Second // wait up to a second; the others are denied at once
	limit, err := httplimit.New(limits, httplimit.Options{
		Routes: []httplimit.Route{
			endpoint("GET /api/users", "users-read", who),
			endpoint("POST /api/users", "users-write", who),
			exports,
			settings.route("/", ip, customer),
		},
		Exclude: []string{"/metrics"},
	})
	if err != nil {
		return nil, err
	}
	return limit(handler), nil
}

// everybody returns the key of the limits that all requests share.
func everybody(*http.Request) string { return "all" }

// customers returns a function that finds the customer of a request by its API key. An unknown key has no customer.
func customers(list string) func(*http.Request) string {
	known := map[string]string{}
	for _, pair := range strings.FieldsFunc(list, comma) {
		key, name, _ := strings.Cut(pair, "=")
		known[key] = name
	}
	return func(r *http.Request) string { return known[r.Header.Get("X-Api-Key")] }
}

func comma(r rune) bool { return r == ',' }
