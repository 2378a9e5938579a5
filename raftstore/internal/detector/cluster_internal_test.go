package detector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-project/weir/internal/faults"
)

const limit = time.Second

// cluster is a set of hosts on a fake network in the time of a synctest bubble. Its groups elect whoever stands for
// election and reaches a majority.
type cluster struct {
	mu     sync.Mutex // held by the fake methods; a test uses the fields between two calls of run
	hosts  []*fakeHost
	groups []*fakeGroup
	cuts   map[[2]string]bool // directions that lose everything

	elections []election
}

// fakeHost is one host. Nothing runs on a host that is paused, and a host that is down has ended.
type fakeHost struct {
	*Detector
	c            *cluster
	addr         string
	paused, down bool
	old          bool // has no detector
}

type fakeGroup struct {
	leader string
	term   uint64
	voters []string
	last   map[string]uint64 // the last log index of each host
	broken map[string]bool   // hosts that nobody votes for
}

// election is an attempt of a host to lead a group.
type election struct {
	group int
	host  string
	at    time.Time
}

var errLost = errors.New("no answer")

// newCluster returns a cluster whose first host leads all groups.
func newCluster(t *testing.T, size, groups int, mistakes ...faults.Set) *cluster {
	c := &cluster{cuts: map[[2]string]bool{}}
	for i := range size {
		h := &fakeHost{c: c, addr: string(rune('A' + i))}
		h.Detector = New(Config{Self: h.addr, Limit: limit, Members: h.members, Network: h, Groups: h,
			Log: slog.New(slog.DiscardHandler)})
		if len(mistakes) > 0 {
			h.Faults = mistakes[0]
		}
		c.hosts = append(c.hosts, h)
	}
	for range groups {
		g := &fakeGroup{leader: "A", term: 1, last: map[string]uint64{}, broken: map[string]bool{}}
		for _, h := range c.hosts {
			g.voters = append(g.voters, h.addr)
		}
		c.groups = append(c.groups, g)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		for _, h := range c.hosts {
			h.tasks.Wait()
		}
	})
	c.run(ctx, 2*limit) // all hosts hear each other
	return c
}

// run lets time pass.
func (c *cluster) run(ctx context.Context, d time.Duration) {
	c.mu.Lock()
	c.mu.Unlock() //nolint:staticcheck // shows the other goroutines what the test has changed
	for end := time.Now().Add(d); time.Now().Before(end); {
		for _, h := range c.hosts {
			if h.runs() && !h.old {
				h.look(ctx, time.Now())
			}
		}
		time.Sleep(limit / ticksPerLimit)
		synctest.Wait()
	}
}

func (c *cluster) host(addr string) *fakeHost { return c.hosts[addr[0]-'A'] }

// cut makes the network lose what some hosts send to others.
func (c *cluster) cut(from, to string, lost bool) { c.cuts[[2]string{from, to}] = lost }

// reaches reports whether two hosts can exchange messages.
func (c *cluster) reaches(a, b string) bool {
	return a == b || !c.cuts[[2]string{a, b}] && !c.cuts[[2]string{b, a}] && c.host(b).runs()
}

func (h *fakeHost) runs() bool { return !h.paused && !h.down }

func (h *fakeHost) members() (others []Host) {
	for _, o := range h.c.hosts {
		if o != h {
			others = append(others, Host{o.addr, "node " + o.addr})
		}
	}
	return others
}

// Ping implements Network.
func (h *fakeHost) Ping(ctx context.Context, to Host) error {
	o := h.c.host(to.Addr)
	time.Sleep(time.Millisecond)
	h.c.mu.Lock()
	arrives := o.runs() && !h.c.cuts[[2]string{h.addr, to.Addr}]
	answers, old := h.c.reaches(h.addr, to.Addr), o.old
	h.c.mu.Unlock()
	if arrives && !old {
		o.Hear(h.addr)
	}
	switch {
	case !answers:
		<-ctx.Done()
		return errLost
	case old:
		return ErrNoDetector
	}
	return nil
}

// Ask implements Network.
func (h *fakeHost) Ask(ctx context.Context, to Host, question []byte) ([]byte, error) {
	time.Sleep(time.Millisecond)
	h.c.mu.Lock()
	answers := h.c.reaches(h.addr, to.Addr) && !h.c.host(to.Addr).old
	h.c.mu.Unlock()
	if !answers {
		<-ctx.Done()
		return nil, errLost
	}
	return h.c.host(to.Addr).Answer(question)
}

// LedBy implements Groups.
func (h *fakeHost) LedBy(addr string) (groups []int) {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	for i, g := range h.c.groups {
		if g.leader == addr {
			groups = append(groups, i)
		}
	}
	return groups
}

// View implements Groups.
func (h *fakeHost) View(group int) (View, bool) {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	g := h.c.groups[group]
	return View{Leader: g.leader, Term: g.term, Last: g.last[h.addr], Voters: g.voters}, true
}

// Elect implements Groups.
func (h *fakeHost) Elect(_ context.Context, group int, _ string) {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	g := h.c.groups[group]
	h.c.elections = append(h.c.elections, election{group, h.addr, time.Now()})
	g.term++
	votes := 0
	for _, v := range g.voters {
		if h.c.reaches(h.addr, v) && !g.broken[h.addr] {
			votes++
		}
	}
	if votes > len(g.voters)/2 {
		g.leader = h.addr
	}
}

// elected returns the hosts that stood for election in a group, in order.
func (c *cluster) elected(group int) (hosts []string) {
	for _, e := range c.elections {
		if e.group == group {
			hosts = append(hosts, e.host)
		}
	}
	return hosts
}

// gap returns the shortest time between two elections in a group.
func (c *cluster) gap(group int) time.Duration {
	var last time.Time
	least := time.Hour
	for _, e := range c.elections {
		if e.group == group {
			least = min(least, e.at.Sub(last))
			last = e.at
		}
	}
	return least
}

// leads counts the groups of a host.
func (c *cluster) leads(addr string) int { return len(c.hosts[0].LedBy(addr)) }

// counts returns the confirmed and the unconfirmed silences that a host counted.
func (c *cluster) counts(addr string) string {
	h := c.host(addr)
	return fmt.Sprintf("%d confirmed, %d not", h.Confirmed.Load(), h.Unconfirmed.Load())
}

// without returns the list without some elements.
func without(list []string, some ...string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(some, s) })
}
