package clienttest

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// website is the filter in the website's document, which every request passes. It uses weir through a standard Redis
// client and an address only.
type website struct{ weir *redis.Client }

// serve returns the status of the answer to a request, and the header fields about its limit.
func (w website) serve(ctx context.Context, method, path, ip, user string) (status int, header http.Header, err error) {
	header = http.Header{}
	if w.skips(method, path) {
		return http.StatusOK, header, nil
	}
	key := "ip:" + ip
	if user != "" {
		key = "user:" + user
	}
	answer, err := w.weir.Do(ctx, "RL.CHECK", w.tier(path), key).Slice()
	if err != nil {
		return 0, nil, err
	}
	allowed, remaining, waitMs := answer[0].(int64), answer[1].(int64), answer[2].(int64)
	header.Set("X-RateLimit-Remaining", strconv.FormatInt(remaining, 10))
	if allowed == 1 {
		return http.StatusOK, header, nil
	}
	header.Set("Retry-After", strconv.FormatInt((waitMs+999)/1000, 10))
	return http.StatusTooManyRequests, header, nil
}

func (website) skips(method, path string) bool {
	return method == http.MethodOptions || strings.HasPrefix(path, "/health") || strings.HasPrefix(path, "/static/")
}

func (website) tier(path string) string {
	switch {
	case strings.Contains(path, "/login"):
		return "login"
	case strings.Contains(path, "/recovery"):
		return "recovery"
	}
	return "default"
}

// TestWebsiteIsSwitchedOver runs the website's filter against a server with the website's policy file. It then replaces
// the file by that of production while the server runs.
func TestWebsiteIsSwitchedOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies.yaml")
	use := func(example string) {
		text, err := os.ReadFile(examplesDir + example)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
	use("website.yaml")
	server := startWeir(t, "--policies", path)
	site := website{redis.NewClient(&redis.Options{Addr: server.addr})} // the changed address
	t.Cleanup(func() { _ = site.weir.Close() })
	serve := func(method, path, ip, user string) string {
		status, header, err := site.serve(t.Context(), method, path, ip, user)
		require.NoError(t, err)
		return strings.TrimSpace(strconv.Itoa(status) + " " + header.Get("X-RateLimit-Remaining") + " " +
			header.Get("Retry-After"))
	}

	for left := 9; left >= 0; left-- {
		require.Equal(t, "200 "+strconv.Itoa(left), serve("POST", "/api/auth/login", "192.0.2.1", ""))
	}
	require.Equal(t, "429 0 60", serve("POST", "/api/auth/login", "192.0.2.1", ""))
	require.Equal(t, "200 9", serve("POST", "/api/auth/login", "192.0.2.2", ""), "another address")
	require.Equal(t, "200 99", serve("GET", "/api/users/7", "192.0.2.1", ""), "another tier")
	require.Equal(t, "200 99", serve("GET", "/api/users/7", "192.0.2.1", "7"), "a user who is logged in")
	for left := 4; left >= 0; left-- {
		require.Equal(t, "200 "+strconv.Itoa(left), serve("POST", "/recovery", "192.0.2.1", ""))
	}
	require.Equal(t, "429 0 300", serve("POST", "/recovery", "192.0.2.1", ""))
	for range 200 {
		require.Equal(t, "200", serve("GET", "/health", "192.0.2.1", ""))
		require.Equal(t, "200", serve("OPTIONS", "/api/users/7", "192.0.2.1", ""))
	}

	use("website-production.yaml")
	server.Signal(syscall.SIGHUP)
	require.Eventually(t, func() bool {
		limits, err := site.weir.Do(t.Context(), "RL.POLICY", "GET", "default").Result()
		return err == nil && strings.Contains(oneLine(limits), "TOKENBUCKET 10/s 60")
	}, testWait, 10*time.Millisecond)
	require.Equal(t, "200 58", serve("GET", "/api/users/7", "192.0.2.1", ""),
		"what was used stays used")
	require.Equal(t, "429 0 600", serve("POST", "/recovery", "192.0.2.1", ""))
}
