package systems

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
)

func gatewayHeaders(t *testing.T, p *gatewayProcess) {
	before := time.Now()
	res, body := p.get("/api/orders", "192.168.1.100")
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "ok\n", body)
	require.Equal(t, strconv.Itoa(gatewayRate), res.Header.Get("X-RateLimit-Limit"), "the rate")
	require.Equal(t, strconv.Itoa(gatewayBurst-1), res.Header.Get("X-RateLimit-Remaining"))
	reset, err := strconv.ParseInt(res.Header.Get("X-RateLimit-Reset"), 10, 64)
	require.NoError(t, err)
	require.GreaterOrEqual(t, reset, before.Unix(), "a date")
	require.LessOrEqual(t, reset, time.Now().Unix()+2)
	// The proxy's entry counts, and not the entries that its client wrote before it.
	res, _ = p.get("/api/orders", "10.1.1.1, 192.168.1.101")
	require.Equal(t, strconv.Itoa(gatewayBurst-1), res.Header.Get("X-RateLimit-Remaining"))
}

// gatewayLines checks that several lines of a header are one list, and that the server behind gets all of them.
func gatewayLines(t *testing.T, p *gatewayProcess, s gatewayStore) {
	rdb := s.Redis()
	require.Eventually(t, func() bool { // a bucket of weir is gone when it is full, after a tenth of a second
		p.get("/api/orders", "10.1.1.1", "192.168.1.103")
		n, err := rdb.Exists(t.Context(), "ratelimit:"+gatewayRoute+":192.168.1.103").Result()
		return err == nil && n == 1
	}, weirproc.Wait, time.Millisecond, "the last line counts")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/api/open", nil)
	require.NoError(t, err)
	req.Header["X-Lines"] = []string{"one", "two"}
	res, err := gatewayClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, []string{"one", "two"}, res.Header["X-Lines"])
}

// gatewayKept checks that a connection stays usable after a request that the gateway denies by itself. The denied
// request arrives while the gateway still waits for the answer to the request before it.
func gatewayKept(t *testing.T, p *gatewayProcess, client string) {
	nc, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	require.NoError(t, err)
	defer nc.Close()
	require.NoError(t, nc.SetDeadline(time.Now().Add(weirproc.Wait)))
	answers := bufio.NewReader(nc)
	ask := func(paths ...string) {
		var requests strings.Builder
		for _, path := range paths {
			fmt.Fprintf(&requests, "GET %s HTTP/1.1\r\nHost: gateway\r\nX-Forwarded-For: %s\r\n\r\n", path, client)
		}
		_, err := io.WriteString(nc, requests.String())
		require.NoError(t, err)
		for _, path := range paths {
			res, err := http.ReadResponse(answers, nil)
			require.NoError(t, err, "the gateway reads nothing more: %s", path)
			_, err = io.Copy(io.Discard, res.Body)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
		}
	}
	for range 200 { // without AnswerLaterFilter one of about thirty was the last
		ask("/api/open", "/api/orders")
		ask("/api/open")
	}
}

func gatewayDenial(t *testing.T, p *gatewayProcess) {
	res, body := p.storm("192.168.1.102", gatewayRate, gatewayBurst)
	require.Equal(t, "application/json", res.Header.Get("Content-Type"))
	require.Equal(t, strconv.Itoa(gatewayRate), res.Header.Get("X-RateLimit-Limit"))
	require.Equal(t, "0", res.Header.Get("X-RateLimit-Remaining"))
	require.NotEmpty(t, res.Header.Get("X-RateLimit-Reset"))
	seconds, err := strconv.Atoi(res.Header.Get("Retry-After"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, seconds, 1)
	var problem map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &problem), body)
	unit := "seconds"
	if seconds == 1 {
		unit = "second"
	}
	require.Equal(t, map[string]any{
		"type": "https://api.gateway/errors/rate-limit-exceeded", "title": "Too Many Requests", "status": 429.0,
		"detail":        fmt.Sprintf("Rate limit exceeded. Try again in %d %s.", seconds, unit),
		"correlationId": "abc-123-def",
	}, problem)
}

var gatewayDenials = regexp.MustCompile(`gateway_request_total\{route_path="/api/orders",status="429"\} ([0-9.e+]+)`)

func gatewayMetrics(t *testing.T, p *gatewayProcess) {
	_, page := p.get("/actuator/prometheus", "192.168.1.1")
	found := gatewayDenials.FindStringSubmatch(page)
	require.NotNil(t, found, page)
	n, err := strconv.ParseFloat(found[1], 64)
	require.NoError(t, err)
	require.Positive(t, n)
}
