package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/httpapi"
	"github.com/weir-project/weir/server/servertest"
)

// order sends a command the way the page sends it.
func order(h *httpapi.Server, change func(*http.Request), args ...string) *httptest.ResponseRecorder {
	body, err := json.Marshal(map[string][]string{"args": args})
	if err != nil {
		panic(err) // strings always encode
	}
	r := httptest.NewRequest(http.MethodPost, "/command.json", bytes.NewReader(body))
	r.Host, r.RemoteAddr = "127.0.0.1:6381", "127.0.0.1:50000"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// receivedAt returns the request as if it had arrived at this local address.
func receivedAt(r *http.Request, addr string) *http.Request {
	local := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local)))
}

func TestPageCommands(t *testing.T) {
	var log servertest.LockedBuffer
	srv, err := NewShared(Config{ProtectedMode: true, Logger: slog.New(slog.NewTextHandler(&log, nil))},
		servertest.NewTableLimiter())
	require.NoError(t, err)
	c, h := (&testServer{Shared: srv}).client(t), newHTTP(srv)
	srv.LastID.Store(100) // so that the session of the page has the ID 101
	says := func(want string, args ...string) {
		t.Helper()
		require.JSONEq(t, want, order(h, nil, args...).Body.String())
	}
	says(`{"reply":"OK"}`, "RL.BLOCK", "user:42", "1h", "REASON", "abuse")
	require.Equal(t, "0 0 3600000 3600000 5", c.say("RL.FIXED user:42 1d 5 FIRST"))
	says(`{"reply":1}`, "RL.UNBLOCK", "user:42")
	require.Equal(t, "1 4 0 86400000 5", c.say("RL.FIXED user:42 1d 5 FIRST"))
	says(`{"reply":["allowed",1,"remaining",2,"retry_after_ms",0,"reset_after_ms",86400000,"limit",5,"algorithm","fixed","rule","1d 5 FIRST","why","it needs 2 units, which leaves 2 of 5"]}`,
		"RL.EXPLAIN", "RL.FIXED", "user:42", "1d", "5", "FIRST", "COST", "2")
	says(`{"reply":1}`, "RL.RESET", "user:42")
	says(`{"error":"ERR duration must be like 30s, 500ms, 1m, 1h or 1d (in ms, s, m, h, d or w; a bare 60 is 60s); or FOREVER, not 'soon'"}`,
		"RL.BLOCK", "user:42", "soon")
	for _, args := range [][]string{{"FLUSHALL"}, {"CONFIG", "GET", "*"}, {"RL.POLICY", "DEL", "p"},
		{"RL.TOKENBUCKET", "k", "1/s", "1"}, {"MULTI"}, {"MONITOR"}} {
		says(`{"error":"`+string(errNotByHand)+`"}`, args...)
	}
	require.Contains(t, order(h, nil, "NOSUCH").Body.String(), "unknown command")
	require.Equal(t, 4, strings.Count(log.String(), "msg=audit"), "%s", log.String())
	require.Contains(t, log.String(),
		`user=default addr=127.0.0.1:50000 id=101 command=rl.block args="RL.BLOCK user:42 1h REASON abuse"`)
	require.Contains(t, log.String(), `command=rl.reset args="RL.RESET user:42"`)
	require.NoError(t, h.Close())
	says(`{"error":"ERR the server is stopping"}`, "RL.UNBLOCK", "user:42")
	require.EqualValues(t, 1, srv.Clients.Load(), "the sessions of the page must have ended")
}

// TestPageCommandsAreGuarded checks that a request changes nothing unless it comes from the page, of a user with
// permission. It covers other sites, DNS rebinding, proxies and wrong logins.
func TestPageCommandsAreGuarded(t *testing.T) {
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	from := func(addr, host string) func(*http.Request) {
		return func(r *http.Request) { r.RemoteAddr, r.Host = addr, host }
	}
	login := func(password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth("default", password) }
	}
	for _, tt := range []struct {
		what string
		cfg  Config
		how  func(*http.Request)
		code int
	}{
		{"the page", Config{}, nil, http.StatusOK},
		{"another site", Config{}, header("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		{"another host of the same site", Config{}, header("Sec-Fetch-Site", "same-site"), http.StatusForbidden},
		{"an old browser, from another page", Config{}, func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "http://evil.example")
		}, http.StatusForbidden},
		{"an old browser, from the page", Config{}, func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "http://127.0.0.1:6381")
		}, http.StatusOK},
		{"a form", Config{}, header("Content-Type", "text/plain"), http.StatusUnsupportedMediaType},
		{"no login, another machine, protected", Config{ProtectedMode: true}, from("10.0.0.9:5", "10.0.0.1:6381"),
			http.StatusForbidden},
		{"no login, another machine, unprotected", Config{}, from("10.0.0.9:5", "10.0.0.1:6381"), http.StatusForbidden},
		{"a name made to point here", Config{}, from("127.0.0.1:5", "evil.example:6381"), http.StatusForbidden},
		{"no password", Config{Password: "right"}, nil, http.StatusUnauthorized},
		{"a wrong one", Config{Password: "right"}, login("wrong"), http.StatusUnauthorized},
		{"the right one", Config{Password: "right"}, login("right"), http.StatusOK},
		{"the right one, another site", Config{Password: "right"}, func(r *http.Request) {
			login("right")(r)
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}, http.StatusForbidden},
		{"the right one, by whatever name", Config{Password: "right"}, func(r *http.Request) {
			login("right")(r)
			from("10.0.0.9:5", "weir.example:6381")(r)
		}, http.StatusOK},
		{"a password where none is needed, rebound", Config{}, func(r *http.Request) {
			from("127.0.0.1:5", "evil.example")(r)
			r.Header.Set("Origin", "http://evil.example")
			r.Header.Set("Authorization", "Bearer x")
		}, http.StatusForbidden},
		{"a password where none is needed, another machine", Config{}, func(r *http.Request) {
			from("10.0.0.9:5", "10.0.0.1:6381")(r)
			login("x")(r)
		}, http.StatusForbidden},
		{"an empty login where none is needed", Config{}, func(r *http.Request) {
			from("10.0.0.9:5", "10.0.0.1:6381")(r)
			r.SetBasicAuth("", "")
		}, http.StatusForbidden},
		{"another scheme of login", Config{}, func(r *http.Request) {
			from("10.0.0.9:5", "10.0.0.1:6381")(r)
			r.Header.Set("Authorization", "Digest x")
		}, http.StatusForbidden},
		{"this machine, a login that proves nothing", Config{}, header("Authorization", "Bearer x"), http.StatusOK},
		{"a proxy on this machine", Config{}, header("X-Forwarded-For", "10.0.0.9"), http.StatusForbidden},
		{"a proxy behind a client that sends an empty line", Config{}, func(r *http.Request) {
			r.Header["X-Forwarded-For"] = []string{"", "10.0.0.9"}
		}, http.StatusForbidden},
		{"an nginx that says nothing of itself", Config{}, func(r *http.Request) {
			r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.0", 1, 0
		}, http.StatusForbidden},
		{"a proxy that says so by Forwarded", Config{}, header("Forwarded", "for=10.0.0.9"), http.StatusForbidden},
		{"another address of this machine", Config{}, func(r *http.Request) {
			*r = *receivedAt(r, "10.0.0.1:6381")
			r.Host = "10.0.0.1:6381"
		}, http.StatusOK},
		{"an address that it was not received at", Config{}, func(r *http.Request) {
			*r = *receivedAt(r, "10.0.0.1:6381")
			r.Host = "10.0.0.2:6381"
		}, http.StatusForbidden},
		{"no host", Config{}, from("127.0.0.1:5", ""), http.StatusForbidden},
		{"an address without a port", Config{}, from("[::1]:5", "[::1]"), http.StatusOK},
		{"localhost without a port", Config{}, from("[::1]:5", "localhost"), http.StatusOK},
		{"a name that begins like an address", Config{}, from("127.0.0.1:5", "127.0.0.1.evil.example:6381"),
			http.StatusForbidden},
	} {
		srv := newTestServer(t, tt.cfg)
		w := order(newHTTP(srv.Shared), tt.how, "RL.BLOCK", "user:42", "1h")
		require.Equal(t, tt.code, w.Code, tt.what)
		info, _ := srv.lim.Inspect([]byte("user:42"))
		require.Equal(t, tt.code == http.StatusOK, info.Blocked, tt.what)
	}
	h := newHTTP(newTestServer(t, Config{}).Shared)
	require.Equal(t, http.StatusBadRequest, order(h, nil, strings.Repeat("x", httpapi.MaxPageCommand)).Code)
	require.Equal(t, http.StatusBadRequest,
		order(h, nil, strings.Split(strings.Repeat("x,", httpapi.MaxPageArgs), ",")...).Code)
	require.Equal(t, http.StatusMethodNotAllowed, visit(h, "/command.json", nil).Code)
}

// TestPageLoginsThatProveNothing checks that a user without a password opens the page from this machine only. A user
// with a password opens it from everywhere.
func TestPageLoginsThatProveNothing(t *testing.T) {
	const text = "user default on nopass ~* +@all\nuser guest on nopass ~* +@all\n"
	users := func() (*acl.Users, error) {
		return ParseUsers([]byte(text + "user boss on " + hashOf("ps") + " ~* +@all"))
	}
	h := newHTTP(newTestServer(t, Config{ProtectedMode: true, LoadUsers: users}).Shared)
	for _, user := range []string{"", "default", "guest", "boss"} {
		for _, from := range []string{"127.0.0.1:5", "10.0.0.9:5"} {
			sent := func(r *http.Request) {
				r.RemoteAddr = from
				if user != "" {
					r.SetBasicAuth(user, "ps")
				}
			}
			want := http.StatusForbidden
			if user == "boss" || from == "127.0.0.1:5" {
				want = http.StatusOK
			}
			require.Equal(t, want, visit(h, "/status.json", sent).Code, "%q from %s looks", user, from)
			require.Equal(t, want, order(h, sent, "RL.BLOCK", "k", "1h").Code, "%q from %s acts", user, from)
		}
	}
}
