package httplimit

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/httpfields"
)

// maxEndpointBytes bounds the bytes that a client can write to the log with one request.
const maxEndpointBytes = 256

// logDenial logs a denial that weir decided. The logged client is the key that Route.Key returned.
func (l *limiter) logDenial(r *http.Request, route *Route, key string, d client.Decision) {
	if l.o.LogDenials == nil || d.Source == client.FromFallback || d.Source == client.FromBusy {
		return
	}
	if !route.Rule.IsPolicy() {
		key = strings.TrimPrefix(key, route.Name+"|")
	}
	endpoint := r.Method + " " + r.URL.EscapedPath()
	if len(endpoint) > maxEndpointBytes {
		endpoint = endpoint[:maxEndpointBytes] + "..."
	}
	l.o.LogDenials.WarnContext(r.Context(), "Rate limit exceeded",
		"client", key, "endpoint", endpoint, "limit", route.Name, "retry_after", waitOf(d))
}

// waitOf formats the retry time of a denial in the seconds of Retry-After ("60s"), or returns "never".
func waitOf(d client.Decision) string {
	if d.RetryAfter == client.Never {
		return "never"
	}
	return strconv.FormatInt(max(httpfields.Seconds(d.RetryAfter), 1), 10) + "s"
}
