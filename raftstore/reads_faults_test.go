package raftstore_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore"
)

var readPairs = flag.Int("read-pairs", 400, "how many writes TestReadsUnderFaults reads behind")

// cutter partitions nodes from the others.
type cutter struct {
	index sync.Map // the number of each node, by its address
	cut   [3]atomic.Bool

	mu    sync.Mutex
	conns map[net.Conn][2]int
}

var errCut = errors.New("the network is cut")

// joins puts a node of a new cluster on the network.
func (c *cutter) joins(i int, o *raftstore.Options) {
	for to, addr := range o.Join {
		c.index.Store(addr, to)
	}
	o.Dialer = c.dialFrom(i)
}

// dialFrom returns the dialer of a node.
func (c *cutter) dialFrom(i int) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		to, _ := c.index.Load(addr)
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.cut[i].Load() || c.cut[to.(int)].Load() {
			conn.Close()
			return nil, errCut
		}
		c.conns[conn] = [2]int{i, to.(int)}
		return conn, nil
	}
}

// off begins or ends the partition of a node.
func (c *cutter) off(i int, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut[i].Store(is)
	for conn, ends := range c.conns {
		if ends[0] == i || ends[1] == i {
			conn.Close()
			delete(c.conns, conn)
		}
	}
}

// readers are three nodes that may be closed and opened while others use them.
type readers struct {
	c     *cluster
	nodes [3]atomic.Pointer[raftstore.Node]
}

// pair writes through one node until the write is acknowledged, and reads at another until it answers. It returns how
// much of the key is used.
func (r *readers) pair(rng *rand.Rand, key string, id int) (int64, error) {
	op := engine.Op{Key: []byte(key), Cost: 1, ID: fmt.Append(nil, id), Limit: quota(key, 1<<40).Limit}
	for until := time.Now().Add(patience); ; {
		if r.nodes[rng.IntN(3)].Load().Decide([]engine.Op{op}, make([]engine.Decision, 1)) == nil {
			break
		}
		if time.Now().After(until) {
			return 0, errors.New("no write is acknowledged")
		}
	}
	for until := time.Now().Add(patience); ; {
		n := r.nodes[rng.IntN(3)].Load()
		if n.ReadIndex() == nil {
			info, _ := n.Inspect([]byte(key))
			return info.Used, nil
		}
		if time.Now().After(until) {
			return 0, errors.New("no read is answered")
		}
	}
}

// disturb restarts nodes, cuts them off and moves leadership, until stop is closed.
func (r *readers) disturb(rng *rand.Rand, net *cutter, stop chan struct{}) {
	nap := func(d time.Duration) bool {
		select {
		case <-stop:
			return false
		case <-time.After(d):
			return true
		}
	}
	for nap(50 * time.Millisecond) {
		switch i := rng.IntN(3); rng.IntN(4) {
		case 0:
			r.c.stop(i)
			r.c.restart(i)
			r.nodes[i].Store(r.c.nodes[i])
		case 1, 2: // this may be the leader, which still believes for a while that it leads
			net.off(i, true)
			nap(time.Duration(rng.IntN(600)) * time.Millisecond)
			net.off(i, false)
		default:
			r.nodes[i].Load().TransferLeadership("")
		}
	}
}

// TestReadsUnderFaults writes and reads at random nodes while nodes restart, are partitioned and become the leader.
// No read may lack a write that was acknowledged before it.
func TestReadsUnderFaults(t *testing.T) {
	const workers = 4
	net := &cutter{conns: map[net.Conn][2]int{}}
	c := newCluster(t, 3, func(i int, o *raftstore.Options) {
		o.Heartbeat = quick // so that another node leads while the leader is cut off
		net.joins(i, o)
	})
	c.leader()
	r := &readers{c: c}
	for i := range r.nodes {
		r.nodes[i].Store(c.nodes[i])
	}
	stop := make(chan struct{})
	var trouble, work sync.WaitGroup
	trouble.Go(func() { r.disturb(rand.New(rand.NewPCG(1, 2)), net, stop) })
	var stale, done atomic.Int64
	for w := range workers {
		work.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 3))
			for i := range *readPairs / workers {
				used, err := r.pair(rng, fmt.Sprint("worker", w), i)
				if err != nil {
					t.Error(err)
					return
				}
				if done.Add(1); used != int64(i+1) {
					stale.Add(1)
				}
			}
		})
	}
	work.Wait()
	close(stop)
	trouble.Wait()
	require.Zero(t, stale.Load(), "no read may lack an acknowledged write")
	t.Logf("%d pairs of a write and a read, none stale", done.Load())
}
