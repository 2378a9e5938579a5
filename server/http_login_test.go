package server

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestUsersOverHTTP: what a user may do over HTTP is what he may do over RESP.
func TestUsersOverHTTP(t *testing.T) {
	users := func() (*Users, error) { return ParseUsers([]byte(someUsers)) }
	h, srv := checkedAs(t, Config{LoadUsers: users, HTTPCheck: HTTPCheckProtected}, "boss", "ps")
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
	require.EqualValues(t, 2, srv.state.stats.authFailures.Load())
	require.EqualValues(t, 2, srv.state.stats.noPermission.Load(), "of /check")
}

// TestGuessesOverHTTPAreHeldBack: they count with those over RESP.
func TestGuessesOverHTTPAreHeldBack(t *testing.T) {
	h, srv := checked(t, Config{Password: "sesame", HTTPCheck: HTTPCheckProtected})
	for range freeFailures {
		require.Equal(t, http.StatusUnauthorized, askFrom(h, there, "/check/api?key=k", "Authorization", "Bearer guess").Code)
	}
	require.EqualValues(t, 1, srv.state.stats.lockouts.Load())
}
