package client_test

import (
	"bufio"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/weirtest"
)

// TestPipelinerCoalescesManyCallers checks that requests which arrive during a round trip share few pipelines, and
// that each gets its own answer.
func TestPipelinerCoalescesManyCallers(t *testing.T) {
	const requests, limit = 200, 150
	s := weirtest.Start(t)
	c := newClient(t, s, client.Options{DenialKeys: -1})
	rule := client.FixedFirst(time.Hour, limit)
	decide(t, c, client.Request{Rule: rule, Key: "k", Peek: true}) // opens the connection

	var batches, admitted, begun atomic.Int64
	gate := make(chan struct{})
	s.Instead(func([]engine.Op) (bool, error) {
		batches.Add(1)
		<-gate
		return true, nil
	})
	var running sync.WaitGroup
	for range requests {
		running.Go(func() {
			begun.Add(1)
			if d, err := c.Take(t.Context(), rule, "k"); err != nil {
				t.Error(err)
			} else if d.Allowed {
				admitted.Add(1)
			}
		})
	}
	require.Eventually(t, func() bool { return begun.Load() == requests && batches.Load() > 0 },
		weirtest.Wait, time.Millisecond)
	close(gate)
	running.Wait()
	require.EqualValues(t, limit, admitted.Load())
	require.Less(t, batches.Load(), int64(requests/2))
	t.Logf("%d requests at once in %d batches", requests, batches.Load())
}

// TestWaitingForAPipelineEnds checks that a request which waits for a silent server's pipeline times out like any
// other. It is counted once. The server answers probes only, so that its silence is no outage.
func TestWaitingForAPipelineEnds(t *testing.T) {
	rdb := impostor(t, func(nc net.Conn) {
		for lines := bufio.NewScanner(nc); lines.Scan(); {
			if lines.Text() == "weir-client-probe" {
				_, _ = nc.Write([]byte("-TRYAGAIN not applied\r\n"))
			}
		}
	})
	c := newPatientProber(t, rdb,
		client.Options{WhenDown: client.Open, Timeout: 50 * time.Millisecond})
	var running sync.WaitGroup
	for range 100 {
		running.Go(func() {
			if d, err := c.Take(t.Context(), probe, "k"); err != nil || d.Source != client.FromBusy {
				t.Error(d, err)
			}
		})
	}
	running.Wait()
	require.EqualValues(t, 100, c.Stats().FromBusy)
	require.NoError(t, c.Close())
	d, err := c.Take(t.Context(), probe, "k")
	require.NoError(t, err, "Take must also decide after Close")
	require.Equal(t, client.FromBusy, d.Source)
}
