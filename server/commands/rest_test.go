package commands

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/httpapi"
	"github.com/weir-project/weir/server/service"
)

// rest sends a body in the REST form, with the token "token" unless change says otherwise.
func rest(h *httpapi.Server, path, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Host, r.RemoteAddr = "127.0.0.1:6381", here
	r.Header.Set("Authorization", "Bearer token")
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// bearer gives a request a token.
func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func jsonOf(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

func TestRESTForm(t *testing.T) {
	srv := newTestServer(t, Config{})
	h := newHTTP(srv.Shared)
	says := func(path, body string, status int, want string) {
		t.Helper()
		w := rest(h, path, body, nil)
		require.Equal(t, status, w.Code, "%s", body)
		require.JSONEq(t, want, w.Body.String(), "%s", body)
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	}
	says("/", `["SET", "k", 12]`, 200, `{"result": "OK"}`)
	says("/", `["incrby", "k", "3"]`, 200, `{"result": 15}`)
	says("/", `["GET", "none"]`, 200, `{"result": null}`)
	says("/", `["SET", "t", true]`, 200, `{"result": "OK"}`)
	says("/", `["MGET", "k", "t", "none"]`, 200, `{"result": ["15", "true", null]}`)
	says("/", `["SET", "n", 1.50]`, 200, `{"result": "OK"}`)
	says("/", `["GET", "n"]`, 200, `{"result": "1.50"}`)
	says("/", `["INCR", "t"]`, 400, `{"error": "ERR value is not an integer or out of range"}`)
	says("/pipeline", `[["SET", "a", "x"], ["INCR", "a"], ["GET", "a"]]`, 200,
		`[{"result": "OK"}, {"error": "ERR value is not an integer or out of range"}, {"result": "x"}]`)
	says("/multi-exec", `[["INCR", "m"], ["INCR", "a"], ["KEYS", "m"]]`, 200,
		`[{"result": 1}, {"error": "ERR value is not an integer or out of range"}, {"result": ["m"]}]`)
	says("/multi-exec", `[["INCR", "m"], ["INCR"]]`, 400,
		`{"error": "ERR wrong number of arguments for 'incr' command: INCR key"}`)
	says("/multi-exec", `[["INCR", "m"], ["SUBSCRIBE", "a"]]`, 400, `{"error": "`+errNeedsSession.Error()+`"}`)
	says("/", `["GET", "m"]`, 200, `{"result": "1"}`)
	require.EqualValues(t, 1, srv.Unsupported.Counts()[[2]string{service.RefusesCommand, "subscribe"}])
	require.Zero(t, srv.Clients.Load(), "the sessions of requests must have ended")
	require.NoError(t, h.Close())
	says("/", `["INCR", "m"]`, 503, `{"error": "ERR the server is stopping"}`)
}

// TestRESTFormEncodes checks the replies to a client that asks for base64, as @upstash/redis does: bytes arrive as
// they are.
func TestRESTFormEncodes(t *testing.T) {
	srv := newTestServer(t, Config{})
	h := newHTTP(srv.Shared)
	require.Equal(t, "OK", flat(t, srv.client(t).raw("SET", "k", "\xff\x00")))
	for body, want := range map[string]string{
		`["GET", "k"]`:         `{"result": "` + base64.StdEncoding.EncodeToString([]byte("\xff\x00")) + `"}`,
		`["SET", "t", "OK"]`:   `{"result": "OK"}`,
		`["PING"]`:             `{"result": "UE9ORw=="}`,
		`["MGET", "x", "k"]`:   `{"result": [null, "/wA="]}`,
		`["INCR", "c"]`:        `{"result": 1}`,
		`["EVAL", "x", "0"]x`:  `{"error": ` + jsonOf(t, restShape) + `}`,
		`["ECHO", "\u0000\""]`: `{"result": "ACI="}`,
	} {
		w := rest(h, "/", body, func(r *http.Request) { r.Header.Set("Upstash-Encoding", "base64") })
		require.JSONEq(t, want, w.Body.String(), body)
	}
}

const restShape = `ERR the body must be a JSON array of strings, numbers and booleans like ["INCR", "k"]`

// TestRESTFormIsBounded checks that nothing runs of a request that is malformed or beyond a bound.
func TestRESTFormIsBounded(t *testing.T) {
	srv := newTestServer(t, Config{})
	h := newHTTP(srv.Shared)
	many := func(n int, command string) string { return "[" + strings.Repeat(command+",", n-1) + command + "]" }
	const list = "like [["
	for _, c := range []struct{ path, body, want string }{
		{"/", ``, restShape}, {"/", `[]`, restShape}, {"/", `{"a": 1}`, restShape}, {"/", `"INCR"`, restShape},
		{"/", `["INCR", "k"`, restShape}, {"/", `["INCR", null]`, restShape}, {"/", `["INCR", ["k"]]`, restShape},
		{"/", `["INCR", {"k": 1}]`, restShape}, {"/", `["INCR", "k"] ["INCR", "k"]`, restShape},
		{"/", `["INCR" "k"]`, restShape}, {"/", "[\"INCR\", \"\xff\"]", restShape},
		{"/pipeline", `["INCR", "k"]`, list}, {"/pipeline", `[]`, list}, {"/pipeline", `[[]]`, list},
		{"/pipeline", `[["INCR", "k"], "INCR"]`, list}, {"/multi-exec", `[["INCR", "k"]`, list},
		{"/pipeline", many(1001, `["INCR", "k"]`), "1000 commands"},
		{"/pipeline", many(20, `["DEL"`+strings.Repeat(`,"k"`, 900)+`]`), "16384 words"},
		{"/", `["INCR", "` + strings.Repeat("k", 1<<20) + `"]`, "1048576 bytes"},
	} {
		w := rest(h, c.path, c.body, nil)
		require.Equal(t, http.StatusBadRequest, w.Code, "%.60s", c.body)
		var said struct{ Error string }
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &said))
		require.Contains(t, said.Error, c.want, "%.60s", c.body)
	}
	require.Zero(t, srv.lim.Calls)
	most := rest(h, "/pipeline", many(1000, `["INCR", "k"]`), nil).Body.String()
	require.Equal(t, 1000, strings.Count(most, "result"))
}

// TestRESTFormBoundsReplies checks that long replies end what a request may still run.
func TestRESTFormBoundsReplies(t *testing.T) {
	h := newHTTP(newTestServer(t, Config{}).Shared)
	echo := jsonOf(t, []string{"ECHO", strings.Repeat("x", maxExecBytes/2)})
	long := rest(h, "/", echo, nil)
	require.Equal(t, http.StatusOK, long.Code)
	commands := "[" + strings.Repeat(`["COMMAND", "DOCS"],`, 30) + `["INCR", "k"]]`
	var replies []struct{ Error string }
	require.NoError(t, json.Unmarshal(rest(h, "/pipeline", commands, nil).Body.Bytes(), &replies))
	require.Empty(t, replies[0].Error)
	require.Equal(t, string(errRESTTooLong), replies[len(replies)-1].Error)
	require.JSONEq(t, `{"result": null}`, rest(h, "/", `["GET", "k"]`, nil).Body.String())
}

// TestRESTFormIsGuarded checks who may send a command.
func TestRESTFormIsGuarded(t *testing.T) {
	header := func(lines ...string) func(*http.Request) {
		return func(r *http.Request) {
			for i := 0; i < len(lines); i += 2 {
				r.Header.Set(lines[i], lines[i+1])
			}
		}
	}
	from := func(addr, host string) func(*http.Request) {
		return func(r *http.Request) { r.RemoteAddr, r.Host = addr, host }
	}
	open, closed := Config{}, Config{Password: "right:word"}
	named := Config{Password: "right", LoadUsers: func() (*acl.Users, error) {
		return ParseUsers([]byte("user app on " + hashOf("pa:ss") + " ~* +@all\n" +
			"user off off " + hashOf("x") + " +@all"))
	}}
	for _, c := range []struct {
		what   string
		cfg    Config
		change func(*http.Request)
		status int
	}{
		{"this machine, no password", open, nil, 200},
		{"this machine, no token", open, header("Authorization", ""), 401},
		{"a browser that knows a login", open, header("Authorization", "Basic OnJpZ2h0"), 401},
		{"another machine, no password", open, from(there, "10.0.0.1:6381"), 403},
		{"a name made to point here", open, from(here, "evil.example:6381"), 403},
		{"another site", open, header("Sec-Fetch-Site", "cross-site"), 403},
		{"an old browser, from another page", closed,
			header("Authorization", "Bearer right:word", "Origin", "http://evil.example"), 403},
		{"a wrong token", closed, bearer("wrong"), 401},
		{"a wrong token with a name", closed, bearer("default:right"), 401},
		{"the password, with a colon", closed, bearer("right:word"), 200},
		{"the password, another machine", closed, func(r *http.Request) {
			from(there, "weir:6381")(r)
			bearer("right:word")(r)
		}, 200},
		{"name and password", closed, bearer("default:right:word"), 200},
		{"another user", named, bearer("app:pa:ss"), 200},
		{"another user, wrong password", named, bearer("app:right"), 401},
		{"another user's password", named, bearer("pa:ss"), 401},
		{"another user's name", named, bearer("app"), 401},
		{"a user that is off", named, bearer("off:x"), 401},
		{"the password of default", named, bearer("right"), 200},
	} {
		srv := newTestServer(t, c.cfg)
		w := rest(newHTTP(srv.Shared), "/", `["INCR", "k"]`, c.change)
		require.Equal(t, c.status, w.Code, "%s: %s", c.what, w.Body)
		require.Equal(t, c.status == 200, srv.lim.Calls == 1, c.what)
		var said struct{ Error string }
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &said), c.what)
		require.Equal(t, c.status == 200, said.Error == "", c.what)
	}
}

// TestRESTFormReadsNothingUnasked checks that weir reads no body of a client that is not authenticated, and delays
// those who guess.
func TestRESTFormReadsNothingUnasked(t *testing.T) {
	srv := newTestServer(t, Config{Password: "right"})
	h := newHTTP(srv.Shared)
	body := &countedReader{strings.NewReader(`["INCR", "k"]`), 0}
	for range acl.FreeFailures {
		r := httptest.NewRequest(http.MethodPost, "/", body)
		r.RemoteAddr = there
		r.Header.Set("Authorization", "Bearer guess")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusUnauthorized, w.Code)
	}
	require.Zero(t, body.reads)
	require.EqualValues(t, 1, srv.Stats.Lockouts.Load())
}

type countedReader struct {
	*strings.Reader
	reads int
}

func (r *countedReader) Read(b []byte) (int, error) {
	r.reads++
	return r.Reader.Read(b)
}

func TestRESTFormIsOff(t *testing.T) {
	h, err := httpapi.New(newTestServer(t, Config{}).Service, nil, httpapi.CheckOff, false)
	require.NoError(t, err)
	for _, path := range []string{"/", "/pipeline", "/multi-exec"} {
		w := rest(h, path, `["INCR", "k"]`, nil)
		require.Equal(t, http.StatusNotFound, w.Code)
		require.Contains(t, w.Body.String(), "--http-rest")
	}
}

// askREST sends a line in the REST form. It is a way of TestWrappedCommandsAskTheSame.
func askREST(path string) func(*testing.T, *wrappedRows, *wrappedLine) string {
	return func(t *testing.T, w *wrappedRows, l *wrappedLine) string {
		body := any(l.words)
		if path != "/" {
			body = [][]string{l.words}
		}
		answer := rest(w.web, path, jsonOf(t, body), bearer(l.user+":x"))
		if answer.Code == http.StatusUnauthorized {
			return "-NOAUTH"
		}
		read := json.NewDecoder(bytes.NewReader(answer.Body.Bytes()))
		read.UseNumber()
		var said any
		require.NoError(t, read.Decode(&said), "%s", answer.Body)
		if all, many := said.([]any); many {
			said = all[0]
		}
		reply := said.(map[string]any)
		if text, failed := reply["error"].(string); failed {
			return "-" + text
		}
		return flatJSON(reply["result"])
	}
}

// flatJSON writes a reply as flat does.
func flatJSON(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = flatJSON(v[i])
		}
		return strings.Join(parts, " ")
	case json.Number:
		return v.String()
	}
	return v.(string)
}

func inREST(r *wrappedRow) bool { return !r.cmd.needsSession() }

func loggedIn(r *wrappedRow) bool { return !r.cmd.noAuth }
