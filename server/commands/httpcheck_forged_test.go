package commands

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/httpapi"
)

// TestHTTPCheckForgedForwardedFor sends X-Forwarded-For lines of a client, followed by the line of the proxy. Only the
// proxy's line counts.
func TestHTTPCheckForgedForwardedFor(t *testing.T) {
	const url = "/check/api?key_header=X-Forwarded-For"
	for name, lines := range map[string][]string{
		"one line":            {"203.0.113.9", "192.0.2.7"},
		"several lines":       {"203.0.113.9", "203.0.113.8", "192.0.2.7"},
		"lists in both lines": {"203.0.113.9, 203.0.113.8", "203.0.113.7, 192.0.2.7"},
		"an empty line":       {"", "192.0.2.7"},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := checked(t, Config{}, httpapi.CheckProtected)
			var headers []string
			for _, line := range lines {
				headers = append(headers, "X-Forwarded-For", line)
			}
			require.Equal(t, http.StatusNoContent, askFrom(h, here, url, headers...).Code)
			keys := s.client(t).raw("KEYS", "*")
			require.Contains(t, keys, "policy|api|0|192.0.2.7\r\n")
			require.NotContains(t, keys, "203.0.113")
		})
	}
}

// TestHTTPCheckRedirects checks that a status which redirects a proxy's client is refused for denials and for errors
// separately. The neighbouring statuses are accepted.
func TestHTTPCheckRedirects(t *testing.T) {
	h, _ := checked(t, Config{}, httpapi.CheckProtected)
	ask := func(query string) *httptest.ResponseRecorder { return askFrom(h, here, "/check/api?"+query+"&key=k") }
	for _, name := range []string{"deny_status", "error_status"} {
		for _, redirect := range []string{"300", "301", "302", "307", "308", "399"} {
			w := ask(name + "=" + redirect)
			require.Equal(t, http.StatusBadRequest, w.Code, "%s=%s", name, redirect)
			require.Contains(t, w.Body.String(), name)
		}
	}
	require.Equal(t, http.StatusNoContent, ask("error_status=299").Code)
	require.Equal(t, http.StatusNoContent, ask("error_status=400&deny_status=400").Code)
}
