package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/weir-project/weir/certs/certtest"
	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/httpapi"
	"github.com/weir-project/weir/server/servertest"
)

const (
	// defaultFloodConns is how many connections a usual run opens. It is more than the bound of any port.
	defaultFloodConns = httpapi.CheckMaxConns + 176
	// floodRounds is how often every probe and the honest client ask during a flood.
	floodRounds = 10
	// maxFloodBytes bounds how much resident memory the flood of one port adds.
	maxFloodBytes = 160 << 20
	// quietFiles is how many files may be open briefly without a flood, by the store or a probe.
	quietFiles = 8
	// clientHello begins a TLS handshake, and the rest of the message never follows.
	clientHello = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
	// settings is the preface of HTTP/2, which gRPC uses.
	settings = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	livez    = "GET /livez HTTP/1.1\r\nHost: x\r\n"
)

// floodConns returns the number of connections of a flood, which WEIRTEST_FLOOD_CONNS can set.
func floodConns(t *testing.T) int {
	return fromEnv(t, "WEIRTEST_FLOOD_CONNS", defaultFloodConns, strconv.Atoi)
}

// attackedPort is a port of a server. It has the ways in which a flood holds its connections, and the request of an
// honest client.
type attackedPort struct {
	name, addr string
	ways       []opening
	ask        func() error
}

// TestConnectionFloodKeepsNobodyOut checks every port under a flood from one address. That address opens and reopens
// as many connections as possible, and completes at most one request on each. Probes and clients from another address
// must still be served. WEIRTEST_FLOOD_CONNS sets how many connections it tries to hold.
func TestConnectionFloodKeepsNobodyOut(t *testing.T) {
	n := floodConns(t)
	own := certtest.NewCA(t, "ca").Issue("weir", nil)
	p := start(t, certFlags(own, "--tls-listen=127.0.0.1:0", "--requirepass=secret", "--rls=127.0.0.1:0",
		"--http-check=protected", "--data-dir=", fmt.Sprint("--max-clients=", n/2))...)
	web := strings.TrimPrefix(p.web, "http://")
	_, files := p.takes(t)
	for _, port := range []attackedPort{
		{"RESP", p.addr, []opening{{}, {"*1\r\n$4\r\n", ""}, {"*2\r\n$4\r\nECHO\r\n$900\r\n", "x"}, {"PING\r\n", ""}},
			p.decide(p.addr, "secret", nil)},
		{"RESP, TLS", p.said("tls_listen"), []opening{{}, {clientHello, ""}, {clientHello, "x"}},
			p.decide(p.said("tls_listen"), "secret", &tls.Config{InsecureSkipVerify: true})},
		{"HTTP", web, []opening{{}, {livez + "X: ", "x"}, {livez + "Content-Length: 9\r\n\r\n", ""},
			{livez + "\r\n", ""}},
			p.probe("/check/p?key=k&cost=0")},
		{"RLS", p.said("rls"), []opening{{}, {settings, ""}, {settings[:20], ""}}, p.callRLS},
	} {
		t.Run(port.name, func(t *testing.T) { p.withstand(t, port, n, files) })
	}
	p.stop()
}

// withstand floods a port while probes and an honest client ask. files is how many files the process has open without
// a flood.
func (p *process) withstand(t *testing.T, port attackedPort, n, files int) {
	require.Eventually(t, func() bool { return p.holds(t) <= files+quietFiles },
		patience, 10*time.Millisecond, "the previous flood must end")
	resident, _ := p.takes(t)
	f := startFlood(t.Context(), port.addr, n, port.ways)
	defer f.stop()
	require.Eventually(t, func() bool { return f.tried.Load() > int64(2*n) },
		patience, 10*time.Millisecond, "the flood must reopen cut connections")
	var probes, answered, honest, held, grown int
	for range floodRounds {
		for _, path := range []string{"/livez", "/readyz", "/metrics"} {
			probes++
			if err := p.probe(path)(); err != nil {
				t.Logf("GET %s: %v", path, err)
				continue
			}
			answered++
		}
		if err := port.ask(); err != nil {
			t.Logf("honest client: %v", err)
		} else {
			honest++
		}
		bytes, open := p.takes(t)
		held, grown = max(held, open-files), max(grown, bytes-resident)
	}
	t.Logf("%s: connections tried %d, held at most %d; probes answered %d/%d; honest answered %d/%d; "+
		"resident memory +%d MB",
		port.name, f.tried.Load(), held, answered, probes, honest, floodRounds, grown>>20)
	require.Equal(t, probes, answered)
	require.Equal(t, floodRounds, honest)
	require.Less(t, grown, maxFloodBytes)
}

// takes returns the resident memory of the process in bytes, and the number of its open files.
func (p *process) takes(t *testing.T) (resident, files int) {
	dir := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	statm, err := os.ReadFile(dir + "statm")
	require.NoError(t, err)
	_, err = fmt.Sscan(string(statm), new(int), &resident)
	require.NoError(t, err)
	open, err := os.ReadDir(dir + "fd")
	require.NoError(t, err)
	return resident * os.Getpagesize(), len(open)
}

func (p *process) holds(t *testing.T) int {
	_, files := p.takes(t)
	return files
}

// probe returns a function that requests a path on a connection of its own.
func (p *process) probe(path string) func() error {
	return func() error {
		request, err := http.NewRequest(http.MethodGet, p.web+path, nil)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer secret")
		client := http.Client{Timeout: patience, Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
				return dialFrom(ctx, honestAddr, addr)
			},
		}}
		reply, err := client.Do(request)
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		if _, err := io.Copy(io.Discard, reply.Body); err != nil {
			return err
		}
		if reply.StatusCode >= http.StatusInternalServerError {
			return fmt.Errorf("status %s", reply.Status)
		}
		return nil
	}
}

// decide returns a function that asks for a decision on a connection of its own. The connection logs in if there is a
// password.
func (p *process) decide(addr, password string, config *tls.Config) func() error {
	return func() error {
		nc, err := dialFrom(p.t.Context(), honestAddr, addr)
		if err != nil {
			return err
		}
		defer nc.Close()
		if config != nil {
			nc = tls.Client(nc, config)
		}
		c := redis.NewConn(nc, patience, patience)
		if password != "" {
			if _, err := c.Do("AUTH", password); err != nil {
				return err
			}
		}
		_, err = redis.Int64s(c.Do("RL.FIXED", "honest", "FOREVER", "1000000"))
		return err
	}
}

// callRLS calls the rate limit service on a connection of its own.
func (p *process) callRLS() error {
	conn, err := grpc.NewClient("passthrough:///"+p.said("rls"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return dialFrom(ctx, honestAddr, addr)
		}))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(
		metadata.AppendToOutgoingContext(p.t.Context(), "authorization", "Bearer secret"), patience)
	defer cancel()
	_, err = servertest.Envoy{Conn: conn}.ShouldRateLimit(ctx, &rlspb.Request{Domain: []byte("web"),
		Descriptors: []*rlspb.Descriptor{{
			Entries: []*rlspb.Entry{{Key: []byte("user"), Value: []byte("1")}}}}})
	return err
}
