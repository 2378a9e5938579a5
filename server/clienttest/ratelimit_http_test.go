package clienttest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/weir-project/weir/internal/freeport"
)

// TestForeignRateLimitHTTP asks weir and envoyproxy/ratelimit at the paths that they have in common: status, type and
// body must be the same, except that weir says why it refuses a request.
func TestForeignRateLimitHTTP(t *testing.T) {
	if os.Getenv("WEIRTEST_CLIENTS") == "" {
		t.Skip("SKIPPED: limiter libraries of other languages run with WEIRTEST_CLIENTS=1 (make test-clients)")
	}
	root, dir := limitsDir(t, frontLimits)
	theirs := startRatelimit(t, root, startRedis(t))
	memoryOnly := func(line string) bool { return strings.Contains(line, "without a data directory") }
	w := newWeir(t, freeport.Addr(t), memoryOnly, "--data-dir=", "--rls=127.0.0.1:0", "--envoy-config", dir,
		"--envoy-fields", "--http-check=protected")
	w.HTTP = freeport.Addr(t)
	w.Start()
	call := func(entries string) string {
		return `{"domain": "web", "descriptors": [{"entries": [` + entries + `]}]}`
	}
	ann := `{"key": "user", "value": "ann"}`
	for _, c := range []struct {
		status     int
		path, body string
	}{
		{200, "/healthcheck", ""},
		{200, "/rlconfig", ""},
		{200, "/json", call(ann)},
		{200, "/json", call(`{"key": "user", "value": "räksmörgås 食"}`)},
		{200, "/json", `{"domain": "web", "hitsAddend": 2, "descriptors": [{"entries": [` + ann + `]}]}`},
		{429, "/json", call(ann)},
		{429, "/json", call(`{"key": "user", "value": "banned"}`)},
		{200, "/json", call(`{"key": "user", "value": "root"}`)},
		{200, "/json", call(`{"key": "trial"}`)},
		{200, "/json", call(`{"key": "trial"}`)},
		{200, "/json", call(`{"key": "unknown"}`)},
		{429, "/json", call(ann + `]}, {"entries": [{"key": "trial", "value": "x"}`)},
		{200, "/json", `{"domain": "web", "descriptors": [{"entries": [{"key": "heavy"}], "hits_addend": "4"}]}`},
		{200, "/json", `{"domain": "other", "descriptors": [{"entries": [` + ann + `]}]}`},
		{200, "/json", `{"domain": "web", "descriptors": [{"entries": [{"key": "plan"}], "limit": {"unit": "YEAR",
			"requests_per_unit": 9}}]}`},
		{400, "/json", ""},
		{400, "/json", "{"},
		{400, "/json", "[]"},
		{400, "/json", `{"domain": "web"}`},
		{400, "/json", `{"domain": "web", "descriptors": []}`},
		{400, "/json", `{"descriptors": [{"entries": [` + ann + `]}]}`},
		{400, "/json", `{"domain": 5}`},
		{400, "/json", `{"domain": "web", "descriptors": [{"entries": [{"key": "user", "wert": "x"}]}]}`},
		{400, "/json", `{"domain": "web", "hits_addend": -1, "descriptors": [{"entries": [` + ann + `]}]}`},
		{400, "/json", "{\"domain\": \"\xff\"}"},
		{404, "/json/", ""},
	} {
		at := theirs.http
		if c.path == "/rlconfig" {
			at = theirs.debug
		}
		status, kind, body := post(t, "http://"+at+c.path, c.body)
		mine, myKind, mineBody := post(t, "http://"+w.HTTP+c.path, c.body)
		require.Equal(t, c.status, status, "%s %s", c.path, c.body)
		require.Equal(t, status, mine, "%s %s: %s", c.path, c.body, mineBody)
		require.Equal(t, kind, myKind, "%s %s", c.path, c.body)
		require.Equal(t, shapeOf(t, status, body), shapeOf(t, mine, mineBody), "%s %s", c.path, c.body)
	}

	for _, service := range []string{"", "ratelimit", "envoy.service.ratelimit.v3.RateLimitService", "x"} {
		asked := func(addr string) (*healthpb.HealthCheckResponse, *status.Status) {
			out, err := healthpb.NewHealthClient(dialService(t, addr)).Check(t.Context(),
				&healthpb.HealthCheckRequest{Service: service}, grpc.WaitForReady(true))
			return out, status.Convert(err)
		}
		out, err := asked(theirs.grpc)
		mine, myErr := asked(w.rlsAddr())
		require.Equal(t, out.GetStatus(), mine.GetStatus(), service)
		require.Equal(t, err.Code(), myErr.Code(), service)
		require.Equal(t, err.Message(), myErr.Message(), service)
	}
}

func post(t *testing.T, url, body string) (status int, kind, answer string) {
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, res.Header.Get("Content-Type"), string(text)
}

// shapeOf returns what of a body must be the same: JSON without its spaces, the first words of an error, the lines of
// a text in any order. Times until a reset differ, because seconds pass.
func shapeOf(t *testing.T, status int, body string) []string {
	if status == http.StatusBadRequest {
		require.Regexp(t, `^Bad Request(: ERR .*)?\n$`, body)
		return nil
	}
	if !strings.HasPrefix(body, "{") {
		lines := strings.Split(body, "\n")
		slices.Sort(lines)
		return lines
	}
	var read struct {
		Statuses []struct{ DurationUntilReset string }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &read))
	for _, s := range read.Statuses {
		if s.DurationUntilReset != "" {
			body = strings.ReplaceAll(body, s.DurationUntilReset, "T")
			body = strings.ReplaceAll(body, `"`+strings.TrimSuffix(s.DurationUntilReset, "s")+`"`, `"T"`)
		}
	}
	var out bytes.Buffer
	require.NoError(t, json.Compact(&out, []byte(body)))
	return []string{strings.Replace(out.String(), `,{"key":"Retry-After","value":"T"}`, "", 1)} // weir's own field
}
