package commands

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/httpapi"
	"github.com/weir-project/weir/server/service"
)

// TestUsersOverHTTP checks that a user has the same permissions over HTTP as over RESP.
func TestUsersOverHTTP(t *testing.T) {
	users := func() (*acl.Users, error) { return ParseUsers([]byte(someUsers)) }
	h, srv := checkedAs(t, Config{LoadUsers: users}, httpapi.CheckProtected, "boss", "ps")
	for _, c := range []struct {
		user, password, path string
		want                 int
	}{
		{"", "", "/", http.StatusUnauthorized},
		{"boss", "wrong", "/", http.StatusUnauthorized},
		{"gone", "pg", "/", http.StatusUnauthorized},
		{"boss", "ps", "/", http.StatusOK},
		{"looker", "pl", "/status.json", http.StatusOK},
		{"app", "pa", "/status.json", http.StatusForbidden},
		{"policies", "pp", "/key.json?name=k", http.StatusForbidden},
		{"", "", "/check/api?key=app:1", http.StatusUnauthorized},
		{"app", "pa", "/check/api?key=app:1", http.StatusNoContent},
		{"app", "pa", "/check/api?key=other", http.StatusForbidden},
		{"looker", "pl", "/check/api?key=app:1", http.StatusForbidden},
	} {
		w := visit(h, c.path, func(r *http.Request) {
			if c.user != "" {
				r.SetBasicAuth(c.user, c.password)
			}
		})
		assert.Equal(t, c.want, w.Code, "%s of %q", c.path, c.user)
	}
	require.EqualValues(t, 2, srv.Stats.AuthFailures.Load())
	require.EqualValues(t, 2, srv.Stats.NoPermission.Load(), "both denied requests to /check must count")
}

// TestGuessesOverHTTPAreHeldBack checks that failed logins over HTTP count together with those over RESP.
func TestGuessesOverHTTPAreHeldBack(t *testing.T) {
	h, srv := checked(t, Config{Password: "sesame"}, httpapi.CheckProtected)
	for range acl.FreeFailures {
		require.Equal(t, http.StatusUnauthorized,
			askFrom(h, there, "/check/api?key=k", "Authorization", "Bearer guess").Code)
	}
	require.EqualValues(t, 1, srv.Stats.Lockouts.Load())
}

// TestOverHTTPAConnectionLogsInOnce checks that a proxy with logged-in connections is not delayed by failed logins from
// its address. Guessing does not become faster by that.
func TestOverHTTPAConnectionLogsInOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := checked(t, Config{Password: "sesame"}, httpapi.CheckProtected)
		connect := func() func(password string) (status int, waited time.Duration) {
			ctx := service.WithLoginMemory(t.Context())
			return func(password string) (int, time.Duration) {
				began := time.Now()
				w := visit(h, "/check/api?cost=0&key=k", func(r *http.Request) {
					*r = *r.WithContext(ctx)
					r.RemoteAddr = there
					r.Header.Set("Authorization", "Bearer "+password)
				})
				return w.Code, time.Since(began)
			}
		}
		proxy, guesser := connect(), connect()
		proxy("sesame")
		for range acl.FreeFailures + 20 {
			guesser("guess")
		}
		for _, c := range []struct {
			by       func(string) (int, time.Duration)
			password string
			status   int
			waited   time.Duration
			why      string
		}{
			{proxy, "sesame", http.StatusNoContent, 0, "it has logged in"},
			{guesser, "sesame", http.StatusNoContent, acl.LoginPauseMax,
				"what others logged in with says nothing about a guess"},
			{guesser, "sesame", http.StatusNoContent, 0, "now it has too"},
			{proxy, "guess", http.StatusUnauthorized, acl.LoginPauseMax, "a guess waits on any connection"},
			{proxy, "sesame", http.StatusNoContent, acl.LoginPauseMax, "and ends what is remembered"},
			{proxy, "sesame", http.StatusNoContent, 0, "until it is right again"},
		} {
			status, waited := c.by(c.password)
			require.Equal(t, c.status, status, c.why)
			require.Equal(t, c.waited, waited, c.why)
		}
	})
}
