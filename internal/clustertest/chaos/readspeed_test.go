package chaos

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// speedReaders is the number of readers at one node. Each reads once at a time.
	speedReaders = 32
	// speedKey is the key that the readers read and the clients of a Prober change.
	speedKey = "probe"
)

// TestReadSpeed measures reads at the leader and at a follower while clients change the same key. It prints the rate
// and the latency, and judges nothing. Run it on two programs in turn: -chaos.reads=10s with and without
// -chaos.binary.
func TestReadSpeed(t *testing.T) {
	skipShort(t)
	if *reads == 0 {
		t.Skip("a measurement: with -chaos.reads")
	}
	cluster, _ := started(t, 0)
	leader, err := cluster.Leader(t.Context(), leaderTimeout)
	require.NoError(t, err)
	follower := cluster.Nodes[(leader+1)%len(cluster.Nodes)]
	for _, c := range []struct {
		name     string
		node     *Node
		greeting []string
	}{
		{"leader", cluster.Nodes[leader], nil},
		{"follower", follower, nil},
		{"follower, READONLY", follower, []string{"READONLY"}},
	} {
		took := readFor(t, c.node.Addr, *reads, c.greeting...)
		slices.Sort(took)
		t.Logf("%-20s %8.0f reads/s, p50 %v, p99 %v", c.name, float64(len(took))/reads.Seconds(), took[len(took)/2],
			took[len(took)*99/100])
	}
}

// readFor reads for a while and returns the duration of each read.
func readFor(t *testing.T, addr string, lasts time.Duration, greeting ...string) (all []time.Duration) {
	var mu sync.Mutex
	var readers sync.WaitGroup
	over := time.Now().Add(lasts)
	for range speedReaders {
		c, err := Dial(addr, dialTimeout)
		require.NoError(t, err)
		defer c.Close()
		if len(greeting) > 0 {
			_, err = c.Do(patientTimeout, greeting...)
			require.NoError(t, err)
		}
		readers.Go(func() {
			var took []time.Duration
			for begun := time.Now(); begun.Before(over); begun = time.Now() {
				reply, err := c.Do(patientTimeout, "RL.INSPECT", speedKey)
				if _, failed := reply.(ErrorReply); failed || err != nil {
					t.Errorf("RL.INSPECT at %s: %v, %v", addr, reply, err)
					return
				}
				took = append(took, time.Since(begun))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
		})
	}
	readers.Wait()
	require.NotEmpty(t, all)
	return all
}
