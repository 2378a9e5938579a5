package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/internal/freeport"
)

// ErrNoLeader reports that no node led within the given time.
var ErrNoLeader = errors.New("no leader")

// pollInterval is the interval at which a condition of the cluster is checked.
const pollInterval = 10 * time.Millisecond

// snapshotBytes is the size of the log at which a node writes a snapshot. It is small, so that a node takes one every
// few seconds, and a node that was away needs one.
const snapshotBytes = "256kb"

// ClusterConfig describes the cluster to start.
type ClusterConfig struct {
	Binary    string
	Dir       string        // for data and logs
	Nodes     int           // 1 is a server without a cluster
	Founders  int           // the first ones, which found the cluster that the others join; 0: all
	Heartbeat time.Duration // 0: the server's default
	Args      []string      // more arguments for every node
	// OnExit is called when a node ends that the harness did not stop.
	OnExit func(n *Node, err error)
}

// Cluster is a set of nodes and the network between them.
type Cluster struct {
	Nodes    []*Node
	Mesh     *Mesh
	Disk     *SmallDisk // of the last node; nil if there is none
	Groups   int        // Raft groups
	Replicas int        // nodes that have each group; 0: all

	Refused            atomic.Int64 // damaged logs that nodes have refused with a reason
	Moved, Interrupted atomic.Int64 // replicas, and kills meanwhile

	closing sync.Once
}

// NewCluster prepares nodes and network; StartAll starts them. The caller must Close a cluster that is not nil, also
// after an error.
func NewCluster(cfg ClusterConfig) (*Cluster, error) {
	addrs, err := freeport.Take(2 * cfg.Nodes)
	if err != nil {
		return nil, err
	}
	clients, rafts := addrs[:cfg.Nodes], addrs[cfg.Nodes:]
	mesh, err := newMesh(rafts)
	c := &Cluster{Mesh: mesh, Groups: cfg.Groups(), Replicas: cfg.Replicas()}
	if err != nil {
		return c, err
	}
	for i := range cfg.Nodes {
		id := "n" + strconv.Itoa(i+1)
		n := &Node{
			ID: id, Addr: clients[i], RaftAddr: rafts[i], binary: cfg.Binary, onExit: cfg.OnExit,
			Dir: filepath.Join(cfg.Dir, id), LogFile: filepath.Join(cfg.Dir, id+".log"),
		}
		if err := os.MkdirAll(n.Dir, 0o755); err != nil {
			return c, err
		}
		n.args = serveArgs(cfg, n, mesh.DialMap(i), rafts)
		c.Nodes = append(c.Nodes, n)
	}
	return c, nil
}

// serveArgs returns the command line of a node.
func serveArgs(cfg ClusterConfig, n *Node, dial string, rafts []string) []string {
	args := []string{"serve", "--listen", n.Addr, "--http", "", "--data-dir", n.Dir, "--debug-commands"}
	if cfg.Nodes > 1 {
		founders := rafts[:cmp.Or(cfg.Founders, cfg.Nodes)]
		args = append(args, "--node-id", n.ID, "--raft-addr", n.RaftAddr, "--join", strings.Join(founders, ","),
			"--test-dial", dial, "--snapshot-bytes", snapshotBytes)
		if slices.Contains(founders, n.RaftAddr) {
			args = append(args, "--expect", strconv.Itoa(len(founders)))
		}
		if cfg.Heartbeat > 0 {
			args = append(args, "--raft-heartbeat", cfg.Heartbeat.String())
		}
	}
	return append(args, cfg.Args...)
}

// StartAll starts every node that is not running.
func (c *Cluster) StartAll() error {
	var errs []error
	for _, n := range c.Nodes {
		errs = append(errs, n.Start())
	}
	return errors.Join(errs...)
}

// KillAll kills all nodes, and then waits for their ends.
func (c *Cluster) KillAll() {
	var all sync.WaitGroup
	for _, n := range c.Nodes {
		if p := n.Process(); p != nil {
			all.Go(p.Kill)
		}
	}
	all.Wait()
}

// Addrs returns the clients' addresses of all nodes.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		addrs[i] = n.Addr
	}
	return addrs
}

// LeaderNow returns the index of a node that regards itself as the leader, or -1. It asks the nodes in parallel,
// because a node that hangs must not delay the others.
func (c *Cluster) LeaderNow() int {
	found := make(chan int, len(c.Nodes))
	for i, n := range c.Nodes {
		go func() {
			if n.Leads() {
				found <- i
			} else {
				found <- -1
			}
		}()
	}
	for range c.Nodes {
		if i := <-found; i >= 0 {
			return i
		}
	}
	return -1
}

// Leader waits until a node leads.
func (c *Cluster) Leader(ctx context.Context, timeout time.Duration) (int, error) {
	leader := -1
	err := poll(ctx, timeout, func() bool {
		leader = c.LeaderNow()
		return leader >= 0
	})
	if err != nil {
		return -1, fmt.Errorf("%w within %v", ErrNoLeader, timeout)
	}
	return leader, nil
}

// Close kills the nodes and takes the network down.
func (c *Cluster) Close() {
	c.closing.Do(func() {
		for _, n := range c.Nodes {
			n.Retire()
		}
		c.Mesh.Close()
		if c.Disk != nil {
			c.Disk.Unmount()
		}
	})
}

// poll checks a condition until it is true. It returns an error after the timeout.
func poll(ctx context.Context, timeout time.Duration, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
