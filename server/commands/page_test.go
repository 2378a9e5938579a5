package commands

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/httpapi"
	"github.com/weir-project/weir/server/servertest"
)

// visit sends the GET request of a browser, after change has adapted it.
func visit(h *httpapi.Server, path string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host, r.RemoteAddr = "127.0.0.1:6381", "127.0.0.1:50000"
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestPageIsServed(t *testing.T) {
	srv := newTestServer(t, Config{})
	h := newHTTP(srv.Shared)
	for path, kind := range map[string]string{"/": "text/html", "/page.js": "text/javascript",
		"/page.css": "text/css"} {
		w := visit(h, path, nil)
		require.Equal(t, http.StatusOK, w.Code, path)
		require.Contains(t, w.Header().Get("Content-Type"), kind)
		require.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'")
		require.NotContains(t, w.Body.String(), "//cdn")
	}
	require.Equal(t, http.StatusNotFound, visit(h, "/page/", nil).Code)
	require.Equal(t, http.StatusNotFound, visit(h, "/index.html", nil).Code)
}

// TestPageIsProtected checks who may see keys. A server with a password requires it. Without one, the rules of
// protected mode apply as on the other port.
func TestPageIsProtected(t *testing.T) {
	as := func(user, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	from := func(addr, host string) func(*http.Request) {
		return func(r *http.Request) { r.RemoteAddr, r.Host = addr, host }
	}
	closed, guarded, open := Config{Password: "right"}, Config{ProtectedMode: true}, Config{}
	for _, tt := range []struct {
		what string
		cfg  Config
		how  func(*http.Request)
		code int
	}{
		{"a password is asked for", closed, nil, http.StatusUnauthorized},
		{"a wrong one", closed, as("default", "wrong"), http.StatusUnauthorized},
		{"another user", closed, as("admin", "right"), http.StatusUnauthorized},
		{"the right one", closed, as("default", "right"), http.StatusOK},
		{"this machine", guarded, nil, http.StatusOK},
		{"this machine by name", guarded, from("[::1]:5", "localhost:6381"), http.StatusOK},
		{"another machine", guarded, from("10.0.0.9:5", "10.0.0.1:6381"), http.StatusForbidden},
		{"a page whose name was made to point here", guarded, from("127.0.0.1:5", "evil.example:6381"),
			http.StatusForbidden},
		{"another machine, where the network keeps strangers out", open, from("10.0.0.9:5", "weir:6381"),
			http.StatusOK},
	} {
		h := newHTTP(newTestServer(t, tt.cfg).Shared)
		for _, path := range []string{"/", "/status.json", "/key.json?name=user:42", "/page.js"} {
			require.Equal(t, tt.code, visit(h, path, tt.how).Code, "%s: %s", tt.what, path)
			if tt.code == http.StatusUnauthorized {
				break // each failed login takes a second
			}
		}
		require.Equal(t, http.StatusOK, visit(h, "/livez", tt.how).Code, "probes must need no login")
	}
}

func TestStatusFeed(t *testing.T) {
	srv := fullServer(t)
	h := newHTTP(srv)
	c := (&testServer{Shared: srv}).client(t)
	look := func() (v httpapi.Status) {
		require.NoError(t, json.Unmarshal(visit(newHTTP(srv), "/status.json", nil).Body.Bytes(), &v))
		return v
	}
	c.say("RL.CHECK login unseen")
	c.say("RL.CHECK login unseen")
	require.Empty(t, look().Denials, "denials must not be recorded while no client looks at them")
	c.say("RL.CHECK login seen")
	c.say("RL.CHECK login seen")
	c.say("RL.FIXED other 1h 0")
	v := look()
	require.Len(t, v.Denials, 1)
	require.Equal(t, []string{"seen", "login"}, []string{v.Denials[0].Key, v.Denials[0].By})
	require.Equal(t, []httpapi.PolicyStatus{{Name: "login", Allowed: 3, Limited: 2, Limits: "FIXED 1h 1"}}, v.Policies)
	require.Equal(t, []int64{3, 2}, []int64{v.Allowed, v.Limited})
	require.Equal(t, "a", v.Cluster.Leader)
	require.Equal(t, httpapi.NodeStatus{ID: "b", Addr: "10.0.0.2:6380", Role: "follower", Up: true, Lag: 1,
		HeardMs: 1000}, v.Cluster.Nodes[1])
	require.Len(t, v.Latency.Counts, len(v.Latency.BoundsS)+1)

	first := visit(h, "/status.json", nil).Body.String()
	c.say("RL.CHECK login more")
	require.Equal(t, first, visit(h, "/status.json", nil).Body.String(),
		"clients that ask within the same interval must share one status")
}

// TestStatusShowsBudgets checks the used units and holds of a heavy budget, and the newest events.
func TestStatusShowsBudgets(t *testing.T) {
	srv := newTestServer(t, Config{})
	c := srv.client(t)
	look := func() (v httpapi.Status) {
		require.NoError(t, json.Unmarshal(visit(newHTTP(srv.Shared), "/status.json", nil).Body.Bytes(), &v))
		return v
	}
	require.Equal(t, []httpapi.EventStatus{}, look().Events)
	c.say("RL.POLICY SET budget LIMIT FIXED FOREVER 1000 NOTIFY 50% 80% RECORD")
	c.say("RL.RESERVE budget acme 600 1m ID a")
	c.say("RL.RESERVE budget acme 100 1m ID b")
	v := look()
	require.Equal(t, []httpapi.TopKey{{Key: "policy|budget|0|acme", Units: 700, Used: 700, Limit: 1000, Holds: 2}},
		v.Admitted)
	c.say("RL.COMMIT b 50")
	c.say("RL.COMMIT a 800")
	v = look()
	require.Equal(t, []httpapi.TopKey{{Key: "policy|budget|0|acme", Units: v.Admitted[0].Units}}, v.Admitted)
	for i := range v.Events {
		require.Positive(t, v.Events[i].AtMs)
		v.Events[i].AtMs = 0
	}
	of := httpapi.EventStatus{Policy: "budget", Key: "acme", Limit: 1000}
	first, second, third, last := of, of, of, of
	first.Cursor, first.Kind, first.ID, first.Share, first.Amount, first.Used = 1, "threshold", "a", 50, 600, 600
	second.Cursor, second.Kind, second.ID, second.Amount, second.Used = 2, "settled", "b", 50, 650
	third.Cursor, third.Kind, third.ID, third.Share, third.Amount, third.Used = 3, "threshold", "a", 80, 200, 850
	last.Cursor, last.Kind, last.ID, last.Amount, last.Used = 4, "settled", "a", 800, 850
	require.Equal(t, []httpapi.EventStatus{last, third, second, first}, v.Events)
	for i := range 20 {
		c.say(fmt.Sprintf("RL.CHECK budget k%d COST 500", i))
	}
	v = look()
	require.Len(t, v.Events, 10)
	require.Equal(t, "k19", v.Events[0].Key)
}

func TestKeyLookup(t *testing.T) {
	srv := newTestServer(t, Config{})
	c, h := srv.client(t), newHTTP(srv.Shared)
	c.say("RL.POLICY SET login LIMIT FIXED 1h 2 LIMIT TOKENBUCKET 1/s 5")
	c.say("RL.CHECK login user:42")
	c.say("RL.TOKENBUCKET user:42 1/s 3")
	c.say(`RL.BLOCK user:42 1h REASON abuse`)
	var answer httpapi.KeyAnswer
	require.NoError(t, json.Unmarshal(visit(h, "/key.json?name=user:42", nil).Body.Bytes(), &answer))
	found := answer.Limiters
	require.Len(t, found, 3)
	require.Equal(t, httpapi.KeyView{Name: "user:42", Algorithm: "tokenbucket", Rule: "1/s 3", Limit: 3, Used: 1,
		Remaining: 2, IdleInMs: 1000,
		Blocked: true, BlockedMs: 3_600_000, BlockedBy: "user:42", Reason: "abuse"}, found[0])
	require.Equal(t, "policy|login|0|user:42", found[1].Name)
	require.Equal(t, "{\"stale_ms\":0,\"limiters\":[]}\n", visit(h, "/key.json?name=idle", nil).Body.String())
	require.Equal(t, http.StatusBadRequest, visit(h, "/key.json", nil).Code)
	require.Equal(t, http.StatusBadRequest,
		visit(h, "/key.json?name="+strings.Repeat("x", engine.MaxKeyLen+1), nil).Code)
}

// TestPageReadsWhatWasDecided checks that the page makes a ReadIndex on its node, and names the node. Without a
// leader it shows that node's state and its age.
func TestPageReadsWhatWasDecided(t *testing.T) {
	f := servertest.NewFakeCluster()
	c, node := clusterClient(t, f, "a", Config{})
	f.SetAge(1500 * time.Millisecond)
	c.say("RL.FIXED k FOREVER 9")
	h := newHTTP(c.sess.srv)
	look := func() (status httpapi.Status, key httpapi.KeyAnswer) {
		require.NoError(t, json.Unmarshal(visit(newHTTP(c.sess.srv), "/status.json", nil).Body.Bytes(), &status))
		require.NoError(t, json.Unmarshal(visit(h, "/key.json?name=k", nil).Body.Bytes(), &key))
		require.Len(t, key.Limiters, 1)
		return status, key
	}
	before := node.Confirms.Load()
	status, key := look()
	require.EqualValues(t, 2, node.Confirms.Load()-before)
	require.Equal(t, []any{"a", "a", int64(0)},
		[]any{status.Cluster.Self, status.Cluster.Leader, status.Cluster.StaleMs})
	require.Equal(t, []any{"a", "a", int64(0)}, []any{key.Self, key.Leader, key.StaleMs})

	f.Lead("")
	status, key = look()
	require.EqualValues(t, 2, node.Confirms.Load()-before, "without a leader no ReadIndex may be tried")
	require.Equal(t, []any{"", int64(1500)}, []any{status.Cluster.Leader, status.Cluster.StaleMs})
	require.Equal(t, []any{"", int64(1500)}, []any{key.Leader, key.StaleMs})

	f.Lead("b")
	f.SetDown(limiter.ErrTryAgain)
	_, key = look()
	require.Equal(t, []any{"b", int64(1500)}, []any{key.Leader, key.StaleMs},
		"a leader that does not answer must make the read stale")
}
