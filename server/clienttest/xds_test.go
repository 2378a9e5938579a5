package clienttest

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	configv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/weir-project/weir/certs/certtest"
	"github.com/weir-project/weir/internal/freeport"
)

// plane is a control plane with the server and the cache of go-control-plane.
type plane struct {
	t     *testing.T
	addr  string
	tls   []grpc.ServerOption
	cache cache.SnapshotCache
	end   func()

	mu       sync.Mutex
	requests []*discoveryv3.DiscoveryRequest
}

// start serves on the plane's address, with an empty cache.
func (p *plane) start() {
	p.t.Helper()
	ln, err := net.Listen("tcp", p.addr)
	require.NoError(p.t, err)
	p.cache = cache.NewSnapshotCache(true, cache.IDHash{}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	s := grpc.NewServer(p.tls...)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(s, server.NewServer(ctx, p.cache, server.CallbackFuncs{
		StreamRequestFunc: func(_ int64, r *discoveryv3.DiscoveryRequest) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.requests = append(p.requests, r)
			return nil
		},
	}))
	var running sync.WaitGroup
	running.Go(func() { _ = s.Serve(ln) })
	p.end = func() { cancel(); s.Stop(); running.Wait() }
}

// send gives the plane a version with one limit of each domain.
func (p *plane) send(version string, limits map[string]*configv3.RateLimitPolicy) {
	p.t.Helper()
	var all []types.Resource
	for domain, limit := range limits {
		all = append(all, &configv3.RateLimitConfig{Name: domain + "-config", Domain: domain,
			Descriptors: []*configv3.RateLimitDescriptor{{Key: "user", RateLimit: limit}}})
	}
	snapshot, err := cache.NewSnapshot(version, map[resource.Type][]types.Resource{resource.RateLimitConfigType: all})
	require.NoError(p.t, err)
	require.NoError(p.t, p.cache.SetSnapshot(p.t.Context(), "gateway", snapshot))
}

// answered waits for the answer to a response, and returns it.
func (p *plane) answered(is func(*discoveryv3.DiscoveryRequest) bool) (found *discoveryv3.DiscoveryRequest) {
	p.t.Helper()
	until(p.t, "the control plane does not get the answer", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, r := range p.requests {
			if r.ResponseNonce != "" && is(r) {
				found = r
			}
		}
		return found != nil
	})
	return found
}

// refusals returns how often weir has refused a version.
func (p *plane) refusals() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if r.ErrorDetail != nil {
			n++
		}
	}
	return n
}

// accepted waits until weir has put a version in force.
func (p *plane) accepted(version string) {
	p.t.Helper()
	p.answered(func(r *discoveryv3.DiscoveryRequest) bool { return r.VersionInfo == version && r.ErrorDetail == nil })
}

// minutely returns a limit.
func minutely(limit uint32) *configv3.RateLimitPolicy {
	return &configv3.RateLimitPolicy{Unit: configv3.RateLimitUnit_MINUTE, RequestsPerUnit: limit}
}

// expected reports whether a line of the log is one that these tests cause.
func expected(line string) bool {
	return strings.Contains(line, "without a data directory") ||
		strings.Contains(line, "no connection to the control") ||
		strings.Contains(line, "the limits for Envoy are invalid")
}

// TestControlPlane checks the limits of a control plane: the first version, an update, a bad update that is refused
// while the version before stays, and a control plane that restarts.
func TestControlPlane(t *testing.T) {
	p := &plane{t: t, addr: freeport.Addrs(t, 1)[0]}
	p.start()
	t.Cleanup(func() { p.end() })
	w := newWeir(t, freeport.Addrs(t, 1)[0], expected, "--data-dir=",
		"--test-clock", "--rls=127.0.0.1:0", "--envoy-xds="+p.addr, "--envoy-xds-node=gateway")
	w.Start()
	conn, err := grpc.NewClient(w.rlsAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	envoy := ratelimitv3.NewRateLimitServiceClient(conn)
	limit := func(domain string) uint32 {
		call := memberCall(1)
		call.Domain, call.Descriptors = domain, call.Descriptors[:1]
		call.Descriptors[0].Entries[0].Key = "user"
		out, err := envoy.ShouldRateLimit(t.Context(), call)
		require.NoError(t, err)
		return out.Statuses[0].GetCurrentLimit().GetRequestsPerUnit()
	}
	_, err = envoy.ShouldRateLimit(t.Context(), memberCall(1))
	require.Equal(t, codes.Unavailable, status.Code(err), "without limits no request may pass as allowed")

	p.send("1", map[string]*configv3.RateLimitPolicy{"web": minutely(10)})
	p.accepted("1")
	require.EqualValues(t, 10, limit("web"))
	require.Zero(t, limit("shop"))

	p.send("2", map[string]*configv3.RateLimitPolicy{"web": minutely(20), "shop": minutely(7)})
	p.accepted("2")
	require.EqualValues(t, 20, limit("web"))
	require.EqualValues(t, 7, limit("shop"))

	p.send("3", map[string]*configv3.RateLimitPolicy{"web": minutely(30), "shop": {RequestsPerUnit: 8}})
	nack := p.answered(func(r *discoveryv3.DiscoveryRequest) bool { return r.ErrorDetail != nil })
	require.Contains(t, nack.ErrorDetail.Message, "shop-config: shop.user: unit must be second, minute")
	require.Equal(t, "2", nack.VersionInfo)
	require.EqualValues(t, 20, limit("web"), "a bad version changes nothing")
	require.EqualValues(t, 7, limit("shop"))

	p.send("4", map[string]*configv3.RateLimitPolicy{"web": minutely(40)})
	p.accepted("4")
	require.EqualValues(t, 40, limit("web"))
	require.Zero(t, limit("shop"), "a domain that a version lacks has no limit")
	require.Equal(t, 1, strings.Count(w.Log(), "the limits for Envoy are invalid"), "a bad version is logged once")
	require.Less(t, p.refusals(), 10, "the control plane sends a refused version again at once")

	p.end()
	require.EqualValues(t, 40, limit("web"), "the limits stay while the control plane is away")
	p.mu.Lock()
	p.requests = nil
	p.mu.Unlock()
	p.start()
	p.send("4", map[string]*configv3.RateLimitPolicy{"web": minutely(50)}) // it counts its versions anew
	p.accepted("4")
	require.EqualValues(t, 50, limit("web"))
}

// TestControlPlaneWithCertificates checks a control plane that asks for a certificate, and one with another authority.
func TestControlPlaneWithCertificates(t *testing.T) {
	ca, other := certtest.NewCA(t, "ca"), certtest.NewCA(t, "other")
	theirs, mine := ca.Issue("gateway", nil), ca.Issue("weir", nil)
	pair, err := tls.LoadX509KeyPair(theirs.Cert, theirs.Key)
	require.NoError(t, err)
	p := &plane{t: t, addr: freeport.Addrs(t, 1)[0], tls: []grpc.ServerOption{grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: ca.Pool(),
		ClientAuth: tls.RequireAndVerifyClientCert}))}}
	p.start()
	t.Cleanup(func() { p.end() })
	p.send("1", map[string]*configv3.RateLimitPolicy{"web": minutely(10)})
	run := func(trusted, name string) *weir {
		w := newWeir(t, freeport.Addrs(t, 1)[0], expected, "--data-dir=",
			"--rls=127.0.0.1:0", "--envoy-xds="+p.addr, "--envoy-xds-node=gateway",
			"--envoy-xds-ca-file="+trusted, "--envoy-xds-cert-file="+mine.Cert, "--envoy-xds-key-file="+mine.Key,
			"--envoy-xds-server-name="+name)
		w.Start()
		return w
	}
	for _, w := range []*weir{run(other.File, "gateway"), run(ca.File, "another.example")} {
		until(t, "weir does not refuse the control plane", func() bool {
			return strings.Contains(w.Log(), "failed to verify certificate")
		})
	}
	require.Empty(t, p.requests)
	run(ca.File, "gateway")
	p.accepted("1")
}
