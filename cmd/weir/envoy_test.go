package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/servertest"
)

func writeLimits(t *testing.T, text string) (path string) {
	path = filepath.Join(t.TempDir(), "limits.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestServeEnvoyConfig checks that a server answers by the limits of files, sends the fields if it should, and still
// has the counts after a restart.
func TestServeEnvoyConfig(t *testing.T) {
	one := writeLimits(t, "domain: web\ndescriptors: [{key: user, rate_limit: {unit: year, requests_per_unit: 3}}]")
	two := writeLimits(t, "domain: web\ndescriptors: [{key: team, rate_limit: {unit: year, requests_per_unit: 5}}]")
	dir := t.TempDir()
	for run := range uint32(2) {
		p := start(t, "--data-dir="+dir, "--rls=127.0.0.1:0", "--envoy-config="+one+","+filepath.Dir(two),
			"--envoy-merge-domains", "--envoy-fields")
		conn, err := grpc.NewClient(p.said("rls"), grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		d := func(key string) *rlspb.Descriptor {
			return &rlspb.Descriptor{Entries: []*rlspb.Entry{{Key: []byte(key), Value: []byte("a")}}}
		}
		out, err := servertest.Envoy{Conn: conn}.ShouldRateLimit(t.Context(),
			&rlspb.Request{Domain: []byte("web"), Descriptors: []*rlspb.Descriptor{d("user"), d("team")}})
		require.NoError(t, err)
		require.Equal(t, 2-run, out.Statuses[0].LimitRemaining)
		require.Equal(t, 4-run, out.Statuses[1].LimitRemaining)
		require.Equal(t, "RateLimit-Limit", out.ResponseHeadersToAdd[0].Key)
		require.Equal(t, "3", out.ResponseHeadersToAdd[0].Value)
		require.NoError(t, conn.Close())
		p.stop()
	}
}

// TestWrongEnvoyFlags checks that weir serve and weir doctor refuse the same.
func TestWrongEnvoyFlags(t *testing.T) {
	bad := writeLimits(t, "domain: web\ndescriptors: [{key: user, rate_limit: {unit: eon}}]")
	for want, args := range map[string][]string{
		"--rls, which is missing": {"--envoy-config=" + bad},
		"need --envoy-config":     {"--rls=127.0.0.1:0", "--envoy-fields"},
		"give one of them": {"--rls=127.0.0.1:0", "--envoy-config=" + bad,
			"--envoy-xds=a:1"},
		"--envoy-xds has the limits for --rls": {"--envoy-xds=a:1"},
		"need --envoy-xds":                     {"--rls=127.0.0.1:0", "--envoy-xds-node=a"},
		"must be HOST:PORT":                    {"--rls=127.0.0.1:0", "--envoy-xds=gateway"},
		"give --envoy-xds-ca-file": {"--rls=127.0.0.1:0", "--envoy-xds=a:1",
			"--envoy-xds-server-name=a"},
		"give both": {"--rls=127.0.0.1:0", "--envoy-xds=a:1", "--envoy-xds-ca-file=" + bad,
			"--envoy-xds-cert-file=" + bad},
		"has no certificate in PEM": {"--rls=127.0.0.1:0", "--envoy-xds=a:1",
			"--envoy-xds-ca-file=" + bad},
		"--envoy-config: " + bad + ":2: web.user: unit must be": {"--rls=127.0.0.1:0", "--envoy-config=" + bad},
		"no such file": {"--rls=127.0.0.1:0", "--envoy-config=" + bad + "x"},
	} {
		s, err := parse(append(args, "--listen=127.0.0.1:0", "--http=", "--data-dir=")...)
		require.NoError(t, err)
		_, err = s.envoyLimits(s.logger())
		require.ErrorContains(t, errors.Join(s.check(), err), want)
		d := doctorCmd{serveCmd: s}
		require.ErrorContains(t, d.subject().Mistakes, want)
	}
}

// TestEnvoyConfigIsFollowed checks that a server follows the files of --envoy-config. A bad file changes nothing.
func TestEnvoyConfigIsFollowed(t *testing.T) {
	limits := func(n int) string {
		return fmt.Sprint("domain: web\ndescriptors: [{key: user, rate_limit: {unit: year, requests_per_unit: ", n,
			"}}]")
	}
	path := writeLimits(t, limits(3))
	p := start(t, "--rls=127.0.0.1:0", "--envoy-config="+filepath.Dir(path))
	conn, err := grpc.NewClient(p.said("rls"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	remaining := func() uint32 {
		out, err := servertest.Envoy{Conn: conn}.ShouldRateLimit(t.Context(), &rlspb.Request{Domain: []byte("web"),
			Descriptors: []*rlspb.Descriptor{{Entries: []*rlspb.Entry{{Key: []byte("user"), Value: []byte("a")}}}}})
		require.NoError(t, err)
		return out.Statuses[0].LimitRemaining
	}
	metric := func(line string) { t.Helper(); require.Contains(t, get(t, p.web+"/metrics"), line+"\n") }
	require.EqualValues(t, 2, remaining())
	replaced(t, path, limits(10))
	p.awaits("the limits for Envoy are in force", 2)
	require.EqualValues(t, 8, remaining())
	replaced(t, path, "domain: web\ndescriptors: [{}]")
	p.awaits("no limit was changed", 1)
	require.EqualValues(t, 7, remaining())
	metric(`weir_config_refused{source="envoy"} 1`)
	metric(`weir_config_contents_total{result="refused",source="envoy"} 1`)
	replaced(t, path, limits(20))
	p.awaits("the limits for Envoy are in force", 3)
	require.EqualValues(t, 16, remaining())
	metric(`weir_config_refused{source="envoy"} 0`)
	p.stop()
}

// TestPathsOfEnvoys checks the paths of envoyproxy/ratelimit while the limits are on their way, and /json without
// --http-check.
func TestPathsOfEnvoys(t *testing.T) {
	p := start(t, "--rls=127.0.0.1:0", "--envoy-xds="+freeport.Addr(t), "--http-check=protected")
	call := func(p *process) *http.Response {
		res, err := http.Post(p.web+"/json", "application/json",
			strings.NewReader(`{"domain": "web", "descriptors": [{"entries": [{"key": "user"}]}]}`))
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res
	}
	probe := func(path string) int {
		res, err := http.Get(p.web + path)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res.StatusCode
	}
	require.Equal(t, http.StatusServiceUnavailable, call(p).StatusCode)
	require.Equal(t, http.StatusInternalServerError, probe("/healthcheck"))
	require.Equal(t, http.StatusOK, probe("/rlconfig"))
	conn, err := grpc.NewClient(p.said("rls"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	out, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, out.Status)
	p.stop()

	off := start(t, "--rls=127.0.0.1:0")
	require.Equal(t, http.StatusNotFound, call(off).StatusCode)
	off.stop()
	locked := start(t, "--rls=127.0.0.1:0", "--http-check=protected", "--requirepass=secret")
	require.Equal(t, http.StatusUnauthorized, call(locked).StatusCode)
	locked.stop()
}
