package proxytest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/internal/weirtest"
)

// nginxConfig is the example of docs/http.md, with a place for its files, the ports, and
// a header that says who connects, because every client of a test is 127.0.0.1.
const nginxConfig = `
daemon off;
pid %[1]s/nginx.pid;
error_log %[1]s/error.log warn;
worker_processes 2;
events { worker_connections 256; }
http {
    access_log off;
    client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
    set_real_ip_from 127.0.0.1;
    real_ip_header X-Test-Client;
    upstream weir { server %[2]s; keepalive 16; }
    server {
        listen %[4]s;
        location / {
            auth_request /_limit;
            auth_request_set $limit $upstream_http_ratelimit;
            auth_request_set $retry $upstream_http_retry_after;
            error_page 403 = @limited;
            add_header RateLimit $limit always;
            proxy_pass http://%[3]s;
        }
        location = /_limit {
            internal;
            proxy_pass http://weir/check/api?deny_status=403&key=$remote_addr;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_pass_request_body off;
            proxy_set_header Content-Length "";
        }
        location @limited {
            add_header Retry-After $retry always;
            add_header RateLimit $limit always;
            return 429;
        }
    }
}
`

// freeAddr is an address that was free a moment ago, for a server that cannot be given
// port 0.
func freeAddr(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	return ln.Addr().String()
}

// startNginx returns the address of an nginx that serves backend, limited by check.
func startNginx(t *testing.T, check, backend string) string {
	binary, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not installed (on Debian: apt install nginx-light)")
	}
	dir, addr := t.TempDir(), freeAddr(t)
	conf := filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(conf, fmt.Appendf(nil, nginxConfig, dir, check, backend, addr), 0o600))
	cmd := exec.Command(binary, "-p", dir, "-e", filepath.Join(dir, "error.log"), "-c", conf)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		_ = cmd.Wait()
		if log, _ := os.ReadFile(filepath.Join(dir, "error.log")); t.Failed() {
			t.Logf("nginx' log:\n%s", log)
		}
	})
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		return c.Close() == nil
	}, weirtest.Wait, 10*time.Millisecond)
	return addr
}

// countConns counts the connections a server is opened.
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

func TestNginx(t *testing.T) {
	const limit, workers, each = 500, 8, 150
	s := weirtest.Start(t)
	limits, err := client.New(s.Redis(), client.Options{WhenDown: client.Closed, Timeout: weirtest.Wait})
	require.NoError(t, err)
	_, err = limits.SetPolicy(t.Context(), "api", client.PolicyTerms{Limits: []*client.Rule{client.FixedFirst(time.Hour, limit)}})
	require.NoError(t, err)
	// A proxy of our own counts the connections nginx opens to weir.
	check := s.HTTP()
	relay, opened := countConns(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forward(t, w, r, check)
	}))
	var served atomic.Int64
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { served.Add(1) }))
	t.Cleanup(backend.Close)
	addr := startNginx(t, relay.Listener.Addr().String(), backend.Listener.Addr().String())

	ask := func(who string) (*http.Response, error) {
		r, err := http.NewRequest(http.MethodGet, "http://"+addr+"/page", nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("X-Test-Client", who)
		res, err := http.DefaultClient.Do(r)
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			err = res.Body.Close()
		}
		return res, err
	}
	var all sync.WaitGroup
	var denied, odd atomic.Int64
	for range workers {
		all.Go(func() {
			for range each {
				res, err := ask("192.0.2.7")
				switch {
				case err != nil:
					t.Error(err)
				case res.StatusCode == http.StatusTooManyRequests:
					denied.Add(1)
				case res.StatusCode != http.StatusOK:
					odd.Add(1)
				}
			}
		})
	}
	all.Wait()
	require.Zero(t, odd.Load())
	require.EqualValues(t, limit, served.Load(), "exactly the limit")
	require.EqualValues(t, workers*each-limit, denied.Load())
	require.Less(t, opened.Load(), int64(workers*each/10), "connections are kept")

	res, err := ask("192.0.2.7")
	require.NoError(t, err)
	require.Equal(t, "3600", res.Header.Get("Retry-After"))
	require.Equal(t, `"api";r=0;t=3600`, res.Header.Get("RateLimit"))
	res, err = ask("2001:db8:1:2::1")
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf(`"api";r=%d;t=3600`, limit-1), res.Header.Get("RateLimit"))
	res, err = ask("2001:db8:1:2:9::9")
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf(`"api";r=%d;t=3600`, limit-2), res.Header.Get("RateLimit"), "the same /64")
}

// forward hands a request on to weir, and the answer back.
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
