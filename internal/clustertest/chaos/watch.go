package chaos

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

const (
	// watchEvery is how often every node is asked whether it leads. watchTimeout bounds the answer. Their sum is well
	// below the shortest election.
	watchEvery   = 50 * time.Millisecond
	watchTimeout = 150 * time.Millisecond
	// digestEvery is how often every node's digest is taken.
	digestEvery = 250 * time.Millisecond
)

// Watch determines from outside which seconds had a leader, and compares the states of the nodes. It is safe for use by
// several goroutines.
type Watch struct {
	cluster    *Cluster
	start      time.Time
	violations *Violations
	Replicas   ledger.Replicas

	leader atomic.Pointer[Node] // the last node that reported leadership

	mu    sync.Mutex
	leads map[*Node]leads    // the last reports
	ledAt time.Duration      // the last time at which a node reported leadership
	gaps  [][2]time.Duration // from, to: without a leader
}

// longestSilence is the time without a report of leadership that is not yet a gap. One answer may be late on a busy
// machine.
const longestSilence = watchEvery + watchTimeout

// Run watches until ctx is over.
func (w *Watch) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, n := range w.cluster.Nodes {
		all.Go(func() { w.follow(ctx, n) })
		all.Go(func() { w.digests(ctx, n) })
	}
	all.Wait()
	w.saw(false)
}

// follow asks one node on one connection, while the node answers.
func (w *Watch) follow(ctx context.Context, n *Node) {
	var conn *Conn
	drop := func() {
		if conn != nil {
			conn.Close()
			conn = nil
		}
	}
	defer drop()
	for ; ctx.Err() == nil; _ = sleep(ctx, watchEvery) {
		if conn == nil {
			c, err := Dial(n.Addr, watchTimeout)
			if err != nil {
				continue
			}
			conn = c
		}
		led, err := w.ask(conn)
		if err != nil {
			drop()
			continue
		}
		if led > 0 {
			w.leader.Store(n)
		}
		if w.allLed(n, led) {
			w.saw(true)
		}
	}
}

// leads is a report of a node: how many groups it leads.
type leads struct {
	groups int
	at     time.Time
}

// ask asks a node how many groups it leads.
func (w *Watch) ask(conn *Conn) (groups int, err error) {
	if w.cluster.Groups == 1 {
		reply, err := conn.Do(watchTimeout, "ROLE")
		if err == nil && isMaster(reply) {
			groups = 1
		}
		return groups, err
	}
	reply, err := conn.Do(watchTimeout, "INFO", "raft")
	return numberIn(reply, "raft_groups_led:"), err
}

// allLed records the report of a node, and reports whether the nodes lead all groups according to their last reports.
func (w *Watch) allLed(n *Node, groups int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leads == nil {
		w.leads = map[*Node]leads{}
	}
	w.leads[n] = leads{groups, time.Now()}
	sum := 0
	for _, l := range w.leads {
		if time.Since(l.at) < longestSilence {
			sum += l.groups
		}
	}
	return sum >= w.cluster.Groups && groups > 0
}

// numberIn returns the number of a field of INFO, or 0.
func numberIn(info any, field string) int {
	_, rest, _ := strings.Cut(fmt.Sprint(info), field)
	digits, _, _ := strings.Cut(rest, "\r\n")
	n, _ := strconv.Atoi(digits)
	return n
}

// Leader returns the clients' address of the last node that reported leadership, or "".
func (w *Watch) Leader() string {
	if n := w.leader.Load(); n != nil {
		return n.Addr
	}
	return ""
}

// saw records a report of leadership, or with false the end of the watch. The time since the last report is a gap
// without a leader if it exceeds longestSilence.
func (w *Watch) saw(leader bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Since(w.start)
	if now-w.ledAt > longestSilence {
		w.gaps = append(w.gaps, [2]time.Duration{w.ledAt, now})
	}
	if leader {
		w.ledAt = now
	}
}

// digests adds the digests of a node to Replicas at intervals of digestEvery. It skips those that the node does not
// send.
func (w *Watch) digests(ctx context.Context, n *Node) {
	for ; ctx.Err() == nil; _ = sleep(ctx, digestEvery) {
		all, err := n.Digests()
		for _, d := range all {
			w.violations.Add("replicas", w.Replicas.Add(d))
		}
		if errors.Is(err, errProtocol) {
			w.violations.Add("replicas", err)
			return
		}
	}
}

// Leaderless returns the total and the longest time without a leader.
func (w *Watch) Leaderless() (total, longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.gaps {
		total += g[1] - g[0]
		longest = max(longest, g[1]-g[0])
	}
	return total, longest
}

// led marks the seconds that had a leader throughout.
func (w *Watch) led(seconds []Second) []Second {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := append([]Second(nil), seconds...)
	for i := range out {
		out[i].Led = true
	}
	for _, g := range w.gaps {
		for i := int(g[0] / time.Second); i <= int(g[1]/time.Second) && i < len(out); i++ {
			out[i].Led = false
		}
	}
	return out
}
