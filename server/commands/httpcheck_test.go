package commands

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/httpapi"
)

// checked is a server with the check enabled. It has the policy "api" of two requests an hour, and "slow", which paces.
func checked(t *testing.T, cfg Config, check string) (*httpapi.Server, *testServer) {
	return checkedAs(t, cfg, check, acl.DefaultUser, cfg.Password)
}

// checkedAs does the same, with policies made by a user.
func checkedAs(t *testing.T, cfg Config, check, user, password string) (*httpapi.Server, *testServer) {
	s := newTestServer(t, cfg)
	c := s.client(t)
	if password != "" {
		c.as(user, password)
	}
	require.Equal(t, "1", c.say("RL.POLICY SET api LIMIT FIXED 1h 2 FIRST"))
	require.Equal(t, "1", c.say("RL.POLICY SET slow LIMIT LEAKYBUCKET 1000/s 5"))
	return newHTTPCheck(s.Shared, check), s
}

func askFrom(h *httpapi.Server, remote, url string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, url, nil)
	r.RemoteAddr = remote
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const (
	here  = "127.0.0.1:4711"
	there = "192.0.2.1:4711"
)

func TestHTTPCheckAnswers(t *testing.T) {
	h, _ := checked(t, Config{}, httpapi.CheckProtected)
	w := askFrom(h, here, "/check/api?key=192.0.2.7")
	require.Equal(t, http.StatusNoContent, w.Code)
	require.Equal(t, `"api";r=1;t=3600`, w.Header().Get("RateLimit"))
	require.Equal(t, `"api";q=2;w=3600`, w.Header().Get("RateLimit-Policy"))
	require.Equal(t, "1", w.Header().Get("X-RateLimit-Remaining"))
	require.Equal(t, http.StatusNoContent, askFrom(h, here, "/check?policy=api&fields=none&key=192.0.2.7").Code)

	w = askFrom(h, here, "/check/api?key=192.0.2.7")
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Equal(t, "3600", w.Header().Get("Retry-After"))
	require.JSONEq(t, `{"type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "status": 429, "retryAfter": 3600,
		"title": "Request cannot be satisfied as assigned quota has been exceeded",
		"detail": "Rate limit exceeded. Try again in 3600 seconds.", "violated-policies": ["api"]}`, w.Body.String())
	w = askFrom(h, here, "/check/api?deny_status=403&fields=x-delta&key=192.0.2.7")
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Equal(t, "429", w.Header().Get("X-Weir-Status"))
	require.Equal(t, "3600", w.Header().Get("X-RateLimit-Reset"))
	require.Empty(t, w.Header().Get("RateLimit"))
	require.Equal(t, http.StatusNoContent, askFrom(h, here, "/check/slow?key=k").Code)
}

func TestHTTPCheckKeys(t *testing.T) {
	for name, c := range map[string]struct {
		url     string
		headers []string
		key     string // that counts
	}{
		"the rest":                {"/check/api?key_rest=a&b=c&cost=0", nil, "a&b=c&cost=0"},
		"the rest, behind others": {"/check/api?cost=1&key_rest=a&key=b&key_rest=c", nil, "a&key=b&key_rest=c"},
		"the rest, escaped":       {"/check/api?key_rest=a%26b+c", nil, "a&b+c"},
		"the rest, escaped badly": {"/check/api?key_rest=50%&x", nil, "50%&x"},
		"escaped":                 {"/check/api?cost=1&key=a%26cost=0+c", nil, "a&cost=0+c"},
		"escaped badly":           {"/check/api?key=50%", nil, "50%"},
		"IPv6":                    {"/check/api?key=2001:db8:1:2:3::4", nil, "2001:db8:1:2::/64"},
		"IPv6 behind ip:":         {"/check/api?key=ip:2001:db8:1:2:3::4", nil, "ip:2001:db8:1:2::/64"},
		"ip: and no address":      {"/check/api?key=ip:unknown", nil, "ip:unknown"},
		"IPv4 in IPv6":            {"/check/api?key=::ffff:192.0.2.7", nil, "192.0.2.7"},
		"a header":                {"/check/api?key_header=X-User", []string{"X-User", "42"}, "42"},
		"no header":               {"/check/api?key_header=X-User", nil, "anonymous"},
		"the last forwarded": {"/check/api?key_header=X-Forwarded-For",
			[]string{"X-Forwarded-For", "1.1.1.1, 192.0.2.7"}, "192.0.2.7"},
		"forwarded with a port": {"/check/api?key_header=X-Forwarded-For",
			[]string{"X-Forwarded-For", "192.0.2.7:4711"}, "192.0.2.7"},
		"IPv6 forwarded with a port": {"/check/api?key_header=X-Forwarded-For",
			[]string{"X-Forwarded-For", "[2001:db8::1]:4711"}, "2001:db8::/64"},
		"IPv6 forwarded in brackets": {"/check/api?key_header=X-Forwarded-For",
			[]string{"X-Forwarded-For", "[2001:db8::1]"}, "2001:db8::/64"},
		"forwarded, no address": {"/check/api?key_header=X-Forwarded-For",
			[]string{"X-Forwarded-For", "unknown"}, "unknown"},
		"a port in a key": {"/check/api?key=192.0.2.7:4711", nil, "192.0.2.7:4711"},
		"a header that nobody asked for": {"/check/api?key=k",
			[]string{"X-Weir-Key", "z", "X-Weir-Cost", "0", "X-Weir-Policy", "slow"}, "k"},
		"policy and cost by header": {"/check?policy_header=X-P&cost_header=X-C&key=k",
			[]string{"X-P", "api", "X-C", "1"}, "k"},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := checked(t, Config{}, httpapi.CheckProtected)
			require.Equal(t, http.StatusNoContent, askFrom(h, here, c.url, c.headers...).Code)
			keys := s.client(t).raw("KEYS", "*")
			require.Contains(t, keys, "policy|api|0|"+c.key+"\r\n")
		})
	}
}

// TestHTTPCheckIsAccountedFor checks that a check over HTTP counts like RL.CHECK.
func TestHTTPCheckIsAccountedFor(t *testing.T) {
	h, s := checked(t, Config{}, httpapi.CheckProtected)
	listener, monitor, c := s.client(t), s.client(t), s.client(t)
	listener.say("SUBSCRIBE weir:denied:policy:api")
	monitor.say("MONITOR")
	c.say("CONFIG SET slowlog-log-slower-than 0")
	c.say("SLOWLOG RESET")
	for _, url := range []string{"/check/api?key=k", "/check/api?cost=2&key=k", "/check/none?key=k",
		"/check/api?cost=x&key=k"} {
		askFrom(h, here, url)
	}
	require.Equal(t, "*3\r\n$7\r\nmessage\r\n$22\r\nweir:denied:policy:api\r\n$1\r\nk\r\n", listener.fake.messages())
	require.Regexp(t, `\[0 127.0.0.1:4711\] "RL.CHECK" "api" "k" "COST" "2"`, monitor.fake.messages())
	require.Regexp(t, `RL.CHECK k 127.0.0.1:4711`, c.say("SLOWLOG GET"))
	require.Equal(t, "policy|api|0|k 2 0", c.say("RL.TOP DENIED"))
	for series, want := range map[string]string{
		`weir_requests_total{command="rl.check",result="allowed"}`:  "1",
		`weir_requests_total{command="rl.check",result="limited"}`:  "1",
		`weir_policy_requests_total{policy="api",result="limited"}`: "1",
		`weir_commands_total{command="rl.check"}`:                   "3",
		`weir_commands_failed_total{command="rl.check"}`:            "1",
		`weir_commands_rejected_total{command="rl.check"}`:          "1",
		`weir_error_replies_total{error="ERR"}`:                     "2",
		`weir_decision_duration_seconds_count`:                      "5", // and two of RL.POLICY
	} {
		require.Equal(t, want, value(t, s.Shared, series), series)
	}
}

// TestHTTPCheckTakesNoParameterFromAKey covers proxies, which cannot escape the text of their clients. A client that
// sends an & can neither set a parameter nor choose another key. The request is refused with a hint.
func TestHTTPCheckTakesNoParameterFromAKey(t *testing.T) {
	const behind = " stands after key: put it before key; or write key_rest= if everything after it is the key\n"
	h, s := checked(t, Config{}, httpapi.CheckProtected)
	for url, want := range map[string]string{
		"/check/api?key=ip:1&cost=2":           "ERR cost" + behind,
		"/check/api?key=ip:1&cost=0":           "ERR cost" + behind,
		"/check/api?cost=2&key=ip:1&cost=0":    "ERR cost" + behind,
		"/check/api?key=ip:1&key=other":        "ERR key" + behind,
		"/check/api?key=ip:1&key_rest=other":   "ERR key_rest" + behind,
		"/check/api?key=ip:1&policy=slow":      "ERR policy" + behind,
		"/check/api?key=ip:1&error_status=200": "ERR error_status" + behind,
		"/check/api?key=ip:1&b=c":              "ERR b" + behind,
		"/check/api?key=ip:1&%63ost=0":         "ERR %63ost" + behind,
		"/check/api?k%65y=ip:1&cost=0":         "ERR cost" + behind,
		"/check/api?key=ip:1&":                 "ERR something" + behind,
		"/check/api?key=ip:1&=":                "ERR something" + behind,
		"/check/api?key&cost=0":                "ERR cost" + behind,
		"/check/api?cost=1&cost=0&key=ip:1":    "ERR cost is given twice\n",
		"/check/api?kee=1&key=ip:1": "ERR parameter must be policy, key or key_rest, cost, priority, " +
			"deny_status, error_status, fields, or policy_header, key_header, from_header, cost_header, " +
			"priority_header, not 'kee'\n",
		"/check/api?key=ip:1&priority=high": "ERR priority" + behind,
	} {
		w := askFrom(h, here, url)
		require.Equal(t, want, w.Body.String(), url)
		require.Equal(t, http.StatusBadRequest, w.Code, url)
	}
	require.Equal(t, "0", s.client(t).say("DBSIZE"), "a refused request must not count")
}

// TestHTTPCheckTakesNothingTwice checks that a URL with two policies or two costs is refused, instead of ignoring one
// of them.
func TestHTTPCheckTakesNothingTwice(t *testing.T) {
	h, s := checked(t, Config{}, httpapi.CheckProtected)
	for url, want := range map[string]string{
		"/check/api?policy=slow&key=k": "policy is given twice: in the path and as policy",
		"/check/api?policy=api&key=k":  "policy is given twice: in the path and as policy",
		"/check/api?policy_header=X-P&key=k": "policy is given twice: in the path and as " +
			"policy_header",
		"/check?policy=api&policy_header=X-P&key=k": "policy is given twice: as policy and as " +
			"policy_header",
		"/check/api?cost=2&cost_header=X-Cost&key=k": "cost is given twice: as cost and as cost_header",
		"/check/api?priority=high&priority_header=X-Priority&key=k": "priority is given twice: as priority and as " +
			"priority_header",
	} {
		w := askFrom(h, here, url)
		require.Equal(t, "ERR "+want+"\n", w.Body.String(), url)
		require.Equal(t, http.StatusBadRequest, w.Code, url)
	}
	require.Equal(t, "0", s.client(t).say("DBSIZE"), "a refused request must not count")
}

// TestHTTPCheckRefuses checks that invalid requests are refused, because a proxy takes anything but 2xx for a denial.
func TestHTTPCheckRefuses(t *testing.T) {
	h, s := checked(t, Config{}, httpapi.CheckProtected)
	for url, status := range map[string]int{
		"/check?key=k": 400, "/check/api": 400, "/check/api?key=": 400, "/check/none?key=k": 404,
		"/check/api?cost=x&key=k":  400,
		"/check/api?cost=-1&key=k": 400, "/check/api?cost=1&cost=2&key=k": 400, "/check/api?kee=k&key=k": 400,
		"/check/api?deny_status=200&key=k": 400, "/check/api?deny_status=302&key=k": 400,
		"/check/api?error_status=100&key=k": 400,
		"/check/api?fields=all&key=k":       400, "/check/api?key=policy|api|0|x": 400, "/check/api?%zz&key=k": 400,
		"/check/api?key=" + strings.Repeat("k", 513): 400, "/check/" + strings.Repeat("p", 65) + "?key=k": 400,
	} {
		require.Equal(t, status, askFrom(h, here, url).Code, url)
	}
	require.Equal(t, "0", s.client(t).say("DBSIZE"), "a refused request must not count")

	s.lim.Err = limiter.ErrClusterDown
	require.Equal(t, http.StatusServiceUnavailable, askFrom(h, here, "/check/api?key=k").Code)
	require.Equal(t, http.StatusOK, askFrom(h, here, "/check/api?error_status=200&key=k").Code,
		"the URL asked for status 200 on errors")
	s.lim.Err = nil
	require.NoError(t, h.Close())
	require.Equal(t, http.StatusServiceUnavailable, askFrom(h, here, "/check/api?key=k").Code)
}

func TestHTTPCheckIsProtected(t *testing.T) {
	const password = "sesame"
	for name, c := range map[string]struct {
		access, password, remote, authorization string
		status                                  int
	}{
		"off":                       {httpapi.CheckOff, "", here, "", 404},
		"this machine":              {httpapi.CheckProtected, "", here, "", 204},
		"this machine, IPv6":        {httpapi.CheckProtected, "", "[::1]:1", "", 204},
		"a login at the site":       {httpapi.CheckProtected, "", here, "Basic YTpi", 204},
		"another machine":           {httpapi.CheckProtected, "", there, "", 403},
		"no address":                {httpapi.CheckProtected, "", "@", "", 403},
		"without the password":      {httpapi.CheckProtected, password, here, "", 401},
		"the wrong password":        {httpapi.CheckProtected, password, here, "Bearer x", 401},
		"the password":              {httpapi.CheckProtected, password, there, "Bearer " + password, 204},
		"another case":              {httpapi.CheckProtected, password, there, "bearer " + password, 204},
		"another case, Basic":       {httpapi.CheckProtected, password, there, "basic OnNlc2FtZQ==", 204},
		"the password, Basic":       {httpapi.CheckProtected, password, there, "Basic OnNlc2FtZQ==", 204},
		"open":                      {httpapi.CheckOpen, "", there, "", 204},
		"open, though there is one": {httpapi.CheckOpen, password, there, "", 204},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := checked(t, Config{Password: c.password}, c.access)
			headers := []string{"X-Forwarded-For", "127.0.0.1"}
			if c.authorization != "" {
				headers = append(headers, "Authorization", c.authorization)
			}
			require.Equal(t, c.status, askFrom(h, c.remote, "/check/api?key=k", headers...).Code)
		})
	}
	_, err := httpapi.New(newTestServer(t, Config{}).Service, nil, "yes", false)
	require.ErrorContains(t, err, `must be off, protected or open, not "yes"`)
}

// TestHTTPCheckTakesLongHeaders covers proxies that forward all headers of their clients, cookies included.
func TestHTTPCheckTakesLongHeaders(t *testing.T) {
	h, _ := checked(t, Config{}, httpapi.CheckProtected)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(ln) }()
	ask := func(cookieBytes int) int {
		r, err := http.NewRequest(http.MethodGet, "http://"+ln.Addr().String()+"/check/api?key=k", nil)
		require.NoError(t, err)
		r.Header.Set("Cookie", strings.Repeat("x", cookieBytes))
		res, err := new(http.Transport).RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res.StatusCode
	}
	require.Equal(t, http.StatusNoContent, ask(32<<10), "headers up to nginx's limit must be accepted")
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, ask(httpapi.MaxCheckHeaderBytes+8<<10))
	require.NoError(t, h.Close())
	require.NoError(t, <-ended)
}
