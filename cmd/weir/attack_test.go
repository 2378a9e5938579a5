package main

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/weir-project/weir/certs/certtest"
	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/servertest"
)

const (
	attackers   = 40  // of each kind at each port
	floods      = 2   // at each port
	servedCalls = 300 // of an honest client meanwhile
	dripEvery   = 20 * time.Millisecond
)

// TestAttackedPortsLeaveOthersServed attacks every port with silent, slow and noisy clients. An honest client must get
// each of its answers, and new clients must be served at every port for clients. The test logs the latency without and
// with the attack.
func TestAttackedPortsLeaveOthersServed(t *testing.T) {
	own := certtest.NewCA(t, "ca").Issue("weir", nil)
	raft := freeport.Addr(t)
	p := start(t, certFlags(own, "--tls-listen=127.0.0.1:0", "--requirepass=secret", "--rls=127.0.0.1:0",
		"--http-check=protected",
		"--node-id=one", "--raft-addr="+raft, "--join="+raft, "--expect=1")...)
	ports := []string{p.addr, p.said("tls_listen"), strings.TrimPrefix(p.web, "http://"), p.said("rls"), raft}
	c, err := redis.Dial("tcp", p.addr, redis.DialPassword("secret"))
	require.NoError(t, err)
	defer c.Close()
	require.Eventually(t, func() bool { // it leads
		_, err := c.Do("RL.FIXED", "honest", "FOREVER", "1000000")
		return err == nil
	}, patience, 10*time.Millisecond)
	quiet := served(t, c)

	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, port := range ports {
		for range attackers {
			running.Go(func() { attack(ctx, port, 0, nil) })
			running.Go(func() { attack(ctx, port, dripEvery, []byte("*1\r\n$4\r\nPING\r\nGET / HTTP/1.1\r\n")) })
		}
		for range floods {
			noise := make([]byte, 4<<10)
			_, _ = rand.Read(noise)
			running.Go(func() { attack(ctx, port, 0, noise) })
		}
	}
	require.Eventually(t, func() bool {
		info, err := redis.String(c.Do("INFO", "clients"))
		require.NoError(t, err)
		_, number, _ := strings.Cut(info, "connected_clients:")
		number, _, _ = strings.Cut(number, "\r\n")
		clients, err := strconv.Atoi(number)
		require.NoError(t, err)
		return clients > 2*attackers // silent ones, slow ones
	}, patience, 10*time.Millisecond)
	attacked := served(t, c)
	p.takesNewcomers("secret")
	end()
	running.Wait()
	t.Logf("%d silent, %d slow and %d noisy peers at each of %d ports: p50 %v, p99 %v, max %v; without them %v, %v, %v",
		attackers, attackers, floods, len(ports), at(attacked, 50), at(attacked, 99), at(attacked, 100), at(quiet, 50),
		at(quiet, 99), at(quiet, 100))
	p.stop()
}

// attack connects repeatedly and sends its bytes: none, one at a time with pauses, or all of them as fast as possible.
func attack(ctx context.Context, addr string, pause time.Duration, send []byte) {
	for ctx.Err() == nil {
		nc, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			continue
		}
		stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
		if send == nil {
			_, _ = nc.Read(make([]byte, 1)) // until it is cut
		}
		for i := 0; err == nil && send != nil; i = (i + 1) % len(send) {
			if pause == 0 {
				_, err = nc.Write(send)
				continue
			}
			_, err = nc.Write(send[i : i+1])
			time.Sleep(pause) // as slow peers are
		}
		stop()
		_ = nc.Close()
	}
}

// served returns how long an honest client waited for its answers, in order.
func served(t *testing.T, c redis.Conn) (took []time.Duration) {
	for i := range servedCalls {
		asked := time.Now()
		d, err := redis.Int64s(c.Do("RL.FIXED", "honest", "FOREVER", "1000000"))
		took = append(took, time.Since(asked))
		require.NoError(t, err)
		require.Len(t, d, 5, "call %d", i)
	}
	slices.Sort(took)
	return took
}

// takesNewcomers connects to each port for clients, as a client with the password.
func (p *process) takesNewcomers(password string) {
	p.t.Helper()
	for _, addr := range []string{p.addr, p.said("tls_listen")} {
		c, err := redis.Dial("tcp", addr, redis.DialUseTLS(addr != p.addr), redis.DialTLSSkipVerify(true),
			redis.DialPassword(password), redis.DialConnectTimeout(patience), redis.DialReadTimeout(patience))
		require.NoError(p.t, err)
		require.NoError(p.t, c.Close())
	}
	ready, err := (&http.Client{Timeout: patience}).Get(p.web + "/readyz")
	require.NoError(p.t, err)
	require.NoError(p.t, ready.Body.Close())
	require.Equal(p.t, http.StatusOK, ready.StatusCode)

	conn, err := grpc.NewClient(p.said("rls"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(p.t, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(
		metadata.AppendToOutgoingContext(p.t.Context(), "authorization", "Bearer "+password), patience)
	defer cancel()
	_, err = servertest.Envoy{Conn: conn}.ShouldRateLimit(ctx, &rlspb.Request{Domain: []byte("web"),
		Descriptors: []*rlspb.Descriptor{{Entries: []*rlspb.Entry{{Key: []byte("user"), Value: []byte("1")}}}}})
	require.NoError(p.t, err)
}

func at(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)-1)*percent/100].Round(10 * time.Microsecond)
}
