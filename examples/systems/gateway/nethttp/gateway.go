package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/client/httplimit"
)

const (
	correlationHeader = "X-Correlation-Id"
	// policyRetry is the pause before the gateway sends the policies again that weir did not accept.
	policyRetry = time.Second
)

// gateway forwards requests to the servers of their routes. The table of routes is replaced as a whole, so that a
// request sees a single version of the file.
type gateway struct {
	client   *client.Client
	table    atomic.Pointer[table]
	changed  chan struct{} // a token while weir may lack policies of the table
	requests *prometheus.CounterVec
	registry *prometheus.Registry
}

// table holds the routes of one version of the file, by path.
type table struct {
	conf   *config
	routes map[string]*route
}

func newGateway(c *client.Client) *gateway {
	g := &gateway{
		client: c, changed: make(chan struct{}, 1), registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_request_total", Help: "Answers to requests.",
		}, []string{"status", "route_path"}),
	}
	g.registry.MustRegister(g.requests)
	return g
}

// use replaces the routes.
func (g *gateway) use(conf *config) {
	t := &table{conf: conf, routes: map[string]*route{}}
	for _, r := range conf.Gateway.Routes {
		t.routes[r.Path] = r
	}
	g.table.Store(t)
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

func (g *gateway) routeOf(r *http.Request) *route { return g.table.Load().routes[r.URL.Path] }

// keepPolicies sends weir a policy for each route that has a limit, after each change of the routes. It repeats that
// until weir has accepted all of them.
func (g *gateway) keepPolicies(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.changed:
		}
		for err := g.setPolicies(ctx); err != nil; err = g.setPolicies(ctx) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(policyRetry):
			}
		}
	}
}

func (g *gateway) setPolicies(ctx context.Context) error {
	t := g.table.Load()
	for _, r := range t.routes {
		if r.RateLimit == nil {
			continue
		}
		_, err := g.client.SetPolicy(ctx, r.ID, client.PolicyTerms{
			Limits: []*client.Rule{client.TokenBucket(client.PerSecond(r.RateLimit.RequestsPerSecond),
				r.RateLimit.BurstSize)},
			// Report makes X-RateLimit-Limit the rate per second.
			Layout: t.conf.Gateway.RateLimit.RedisKeyPrefix + ":{policy}:{key}", Report: time.Second,
		})
		if err != nil {
			return err
		}
		g.client.StandIn(client.Policy(r.ID))
	}
	return nil
}

// limits returns the options of the middleware. It returns an error if a network of the trusted proxies is invalid.
func (g *gateway) limits(trustedProxies []string) (httplimit.Options, error) {
	proxies, err := httplimit.Trust(trustedProxies...)
	if err != nil {
		return httplimit.Options{}, fmt.Errorf("gateway.ratelimit.trusted-proxies: %w", err)
	}
	return httplimit.Options{
		Routes: []httplimit.Route{{
			Pattern: "/",
			Policy: func(r *http.Request) string {
				if route := g.routeOf(r); route != nil && route.RateLimit != nil {
					return route.ID
				}
				return ""
			},
			Key: func(r *http.Request) string { return proxies.Client(r).String() },
		}},
		FallbackStatus: http.StatusTooManyRequests,
		Problem: httplimit.Problem{
			Type: "https://api.gateway/errors/rate-limit-exceeded", Title: "Too Many Requests",
			ContentType: "application/json",
			Members: func(r *http.Request, _ httplimit.Denial) map[string]any {
				return map[string]any{"correlationId": r.Header.Get(correlationHeader), "retryAfter": nil,
					"violated-policies": nil}
			},
		},
	}, nil
}

// ServeHTTP forwards a request to the server of its route.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route := g.routeOf(r)
	if route == nil {
		http.NotFound(w, r)
		return
	}
	route.proxy.ServeHTTP(w, r)
}

// count gives each request an ID, and counts the answers by status and route.
func (g *gateway) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := r.Header.Get(correlationHeader); id == "" || len(id) > 64 {
			r.Header.Set(correlationHeader, rand.Text())
		}
		path := "none"
		if route := g.routeOf(r); route != nil {
			path = route.Path
		}
		answer := &answer{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(answer, r)
		g.requests.WithLabelValues(strconv.Itoa(answer.status), path).Inc()
	})
}

// answer records the status of a response.
type answer struct {
	http.ResponseWriter
	status int
}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
