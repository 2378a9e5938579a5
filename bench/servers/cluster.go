package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	redigo "github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/internal/freeport"
)

// electTimeout is far longer than an election on a busy machine.
const electTimeout = 30 * time.Second

// Cluster is a Server of several weir processes on free loopback ports, which decide together. Requests go to its
// leader.
type Cluster struct {
	Binary     string
	Dir        string // for the data and the logs of its nodes
	Size       int
	Durability string
	Args       []string // further arguments for every node

	nodes []*Process // all nodes, once Start has begun
}

var _ Server = (*Cluster)(nil)

// Start returns when the nodes have elected a leader that hears from all the others.
func (c *Cluster) Start(ctx context.Context) error {
	if c.running() {
		return nil
	}
	err := c.launch()
	for i := 0; i < len(c.nodes) && err == nil; i++ {
		err = c.nodes[i].awaitReady(ctx)
	}
	if err == nil {
		err = c.awaitAll(ctx)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s %w: %w\n%s", c.Binary, ErrNotReady, err, c.tails()), c.Stop())
	}
	return nil
}

func (c *Cluster) running() bool {
	for _, n := range c.nodes {
		if !n.running() {
			return false
		}
	}
	return c.nodes != nil
}

// launch starts all nodes at once, because each waits for the others. Restarted nodes keep their data.
func (c *Cluster) launch() error {
	if c.nodes == nil {
		if err := c.make(); err != nil {
			return err
		}
	}
	for _, n := range c.nodes {
		if err := n.launch(); err != nil {
			return err
		}
	}
	return nil
}

// make assigns names and addresses to the nodes.
func (c *Cluster) make() error {
	addrs, err := freeport.Take(2 * c.Size)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	clients, rafts := addrs[:c.Size], addrs[c.Size:]
	for i := range c.Size {
		c.nodes = append(c.nodes, c.node(i, clients[i], rafts))
	}
	return nil
}

func (c *Cluster) node(i int, addr string, rafts []string) *Process {
	id := "n" + strconv.Itoa(i+1)
	args := []string{"serve", "--listen", addr, "--http", "", "--data-dir", filepath.Join(c.Dir, id),
		"--node-id", id, "--raft-addr", rafts[i], "--join", strings.Join(rafts, ","),
		"--expect", strconv.Itoa(c.Size), "--durability", c.Durability}
	return &Process{
		Binary: c.Binary, Args: append(args, c.Args...), LogFile: filepath.Join(c.Dir, id+".log"),
		Unset: "WEIR_", fixed: addr,
	}
}

// awaitAll returns when one node leads and hears from all the others.
func (c *Cluster) awaitAll(ctx context.Context) error {
	return poll(ctx, ReadyTimeout, func() (bool, error) {
		at, followers := c.leaderNow()
		return at >= 0 && followers == c.Size-1, nil
	})
}

// leaderNow returns the index of the leader, or -1, and the number of followers that the leader hears from.
func (c *Cluster) leaderNow() (at, followers int) {
	for i, n := range c.nodes {
		if followers, leads := roleOf(n.addr); leads {
			return i, followers
		}
	}
	return -1, 0
}

// leader waits until a node leads.
func (c *Cluster) leader(ctx context.Context) (at int, err error) {
	err = poll(ctx, electTimeout, func() (bool, error) {
		at, _ = c.leaderNow()
		return at >= 0, nil
	})
	if err != nil {
		return -1, fmt.Errorf("%w: %w\n%s", ErrNoLeader, err, c.tails())
	}
	return at, nil
}

// Addr returns the address of the leader. It waits until the cluster has a leader.
func (c *Cluster) Addr(ctx context.Context) (string, error) {
	at, err := c.leader(ctx)
	if err != nil {
		return "", err
	}
	return c.nodes[at].addr, nil
}

// Nodes implements Server.
func (c *Cluster) Nodes() []string {
	return mapOf(c.nodes, func(n *Process) string { return n.addr })
}

// PIDs implements Server. The CPU time of all nodes counts.
func (c *Cluster) PIDs() []int {
	return mapOf(c.nodes, func(n *Process) int { return n.cmd.Process.Pid })
}

// CommandLines implements Server.
func (c *Cluster) CommandLines() [][]string {
	return mapOf(c.nodes, func(n *Process) []string { return n.cmd.Args })
}

// Version implements Server.
func (c *Cluster) Version(context.Context) (string, error) { return VersionAt(c.nodes[0].addr) }

// Stop stops all nodes. The last nodes stop without a quorum.
func (c *Cluster) Stop() error {
	var errs []error
	for _, n := range c.nodes {
		errs = append(errs, n.Stop())
	}
	return errors.Join(errs...)
}

func (c *Cluster) tails() string {
	return strings.Join(mapOf(c.nodes, func(n *Process) string { return tail(n.LogFile) }), "\n")
}

// Follower is the same cluster, reached through a node that is not the leader.
type Follower struct{ *Cluster }

// Unwrap returns the cluster.
func (f Follower) Unwrap() Server { return f.Cluster }

// Addr returns the address of a follower. It stays the same while the leader stays the same.
func (f Follower) Addr(ctx context.Context) (string, error) {
	at, err := f.leader(ctx)
	if err != nil {
		return "", err
	}
	return f.nodes[(at+1)%len(f.nodes)].addr, nil
}

// roleOf asks a node whether it leads, and how many followers it hears from. A node that does not answer does not lead.
func roleOf(addr string) (followers int, leads bool) {
	conn, err := Dial(addr)
	if err != nil {
		return 0, false
	}
	defer conn.Close()
	role, err := redigo.Values(Do(conn, "ROLE"))
	if err != nil || len(role) != 3 {
		return 0, false
	}
	name, _ := redigo.String(role[0], nil)
	all, err := redigo.Values(role[2], nil)
	return len(all), name == "master" && err == nil
}

func mapOf[T, U any](from []T, f func(T) U) []U {
	to := make([]U, len(from))
	for i, v := range from {
		to[i] = f(v)
	}
	return to
}
