package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

const (
	sharedGroups = 8
	racers       = 2 // clients of a kind
	racedItems   = 3 // of a kind, which both change
	// stepsAround is how many changes of each client come before a fault, and after it.
	stepsAround = 8
	pausedNode  = 3 * time.Second
	duels       = 3 // of each kind after a fault
	// settledWithin bounds what TestShared waits for. It is far above the time that a busy machine needs.
	settledWithin = 2 * time.Minute
)

var (
	errNotInForce   = errors.New("an answered change is not in force")
	errGroupsDiffer = errors.New("groups or nodes differ")
)

// shared is a run of clients that change what concerns all groups.
type shared struct {
	*testing.T
	cluster         *Cluster
	tally           Tally
	violations      Violations
	sharers         []*sharer
	asks            map[*Node]*Client // that ask one node after a fault
	flushing        bool              // this round has FLUSHALLs, which also forget the IDs
	begun, ended    atomic.Int64      // FLUSHALLs, and those of which nothing more can come
	verified        atomic.Int64      // answers about answered changes
	compared, duels int               // questions that all groups and nodes answered, and duels

	mu       sync.Mutex
	commands map[string]int // answered
}

// sharer is one of the clients of a kind. They race on some items, and each has an item of its own.
type sharer struct {
	*Client
	s       *shared
	own     item
	limits  [2]int64 // of the own policy: for vip:* and for others; 0: none
	want    []string // the right answers about the own item; nil: unknown
	flushes int64    // ended FLUSHALLs before the change
	steps   atomic.Int64
}

// run changes items until ctx is over.
func (c *sharer) run(ctx context.Context) {
	for c.pause(ctx, c.own.kind.think) {
		if c.steps.Add(1); c.rng.IntN(4) > 0 {
			c.own.kind.change(c, c.raced(c.rng.IntN(racedItems)))
			continue
		}
		c.flushes = c.s.ended.Load()
		if c.want = c.own.kind.change(c, c.own); c.want == nil {
			c.own.number++
		}
		c.verify(func(args []string) Answer { return c.Call(args...) })
	}
}

// raced returns an item of the kind that all of its clients change.
func (c *sharer) raced(number int) item { return item{c.own.kind, len(c.s.sharers), number} }

// verify asks every group about the own item. It skips a group that does not answer.
func (c *sharer) verify(ask func(args []string) Answer) {
	for g, tag := range tags() {
		for q, args := range c.own.kind.ask(c.own, tag) {
			if c.want == nil {
				return
			}
			a := ask(args)
			if a.Outcome != Answered || c.want[0] == denied && !c.s.unflushed(c.flushes) {
				continue
			}
			if c.s.verified.Add(1); answerOf(a) != c.want[q] {
				c.s.violations.Add(fmt.Sprint(c.own), fmt.Errorf("%w in group %d: %v answers %s instead of %s",
					errNotInForce, g, args, answerOf(a), c.want[q]))
			}
		}
	}
}

// unflushed reports whether no FLUSHALL was under way since the number of those that have ended was read.
func (s *shared) unflushed(flushes int64) bool {
	return s.ended.Load() == flushes && s.begun.Load() == flushes
}

// round lets the clients work while a fault happens, and judges what they left. FLUSHALL is in every other round.
func (s *shared) round(number int) {
	ctx, stop := context.WithCancel(s.Context())
	s.flushing = number%2 == 1
	s.ended.Store(s.begun.Load()) // the nodes have settled since
	var all sync.WaitGroup
	working := slices.DeleteFunc(slices.Clone(s.sharers),
		func(c *sharer) bool { return c.own.kind == flushes && !s.flushing })
	for _, c := range working {
		all.Go(func() { c.run(ctx) })
	}
	busy := func() {
		for _, c := range working {
			c.steps.Store(0)
		}
		for _, c := range working {
			require.NoError(s, poll(ctx, settledWithin, func() bool { return c.steps.Load() >= stepsAround }))
		}
	}
	busy()
	step := Step{For: pausedNode, Kind: []Kind{PauseOne, KillLeader, PauseLeader}[number%3], Seed: theSeed()}
	require.NoError(s, s.cluster.Do(ctx, step))
	busy()
	stop()
	all.Wait()
	s.violations.Add(string(step.Kind), s.settle())
	for i, c := range s.sharers {
		n := s.cluster.Nodes[(number+i)%len(s.cluster.Nodes)]
		c.verify(func(args []string) Answer { return s.answer(n, args...) })
	}
	for i := range duels {
		s.duel(i)
	}
}

// settle waits until all groups have all changes and all nodes are equal, and compares all raced items. A node may
// still carry out what it was sent before its fault, so they must differ twice.
func (s *shared) settle() (differ error) {
	for range 2 {
		for _, n := range s.cluster.Nodes {
			require.NoError(s, n.AwaitReady(s.Context()))
		}
		s.answer(s.cluster.Nodes[0], "RL.POLICY", "SET", "settled", "LIMIT", "FIXED", "FOREVER",
			strconv.FormatInt(time.Now().Unix(), 10))
		require.NoError(s, poll(s.Context(), settledWithin, s.equalNodes), "nodes without traffic have other states")
		differ = nil
		for i := range len(s.sharers) * racedItems {
			differ = errors.Join(differ, s.same(s.sharers[i/racedItems].raced(i%racedItems)))
		}
		if differ == nil {
			return nil
		}
	}
	return differ
}

// equalNodes reports whether all nodes have the same state, list the same, and count the keys that they show.
func (s *shared) equalNodes() bool {
	states := map[string]bool{}
	for _, n := range s.cluster.Nodes {
		digests, err := n.Digests()
		for i := range digests {
			digests[i].Node = ""
		}
		members, policies := s.answer(n, "SMEMBERS", "blacklist"), s.answer(n, "RL.POLICY", "LIST")
		keys, _ := s.answer(n, "KEYS", "*").Reply.([]any)
		uncounted := s.answer(n, "DBSIZE").Reply != int64(len(keys))
		states[fmt.Sprint(digests, err, members.Reply, policies.Reply, len(keys), uncounted)] = true
		if uncounted {
			return false
		}
	}
	return len(states) == 1
}

// duel lets the clients of each kind change an item at once, at two nodes. No other change repairs a difference then.
func (s *shared) duel(number int) {
	for one := 0; one < len(s.sharers); one += racers {
		i := s.sharers[one].raced(number % racedItems)
		var answered atomic.Int64
		var all sync.WaitGroup
		for k, c := range s.sharers[one : one+racers] {
			c.Close()
			c.at = (number + k) % len(c.addrs)
			all.Go(func() {
				if i.kind != flushes && i.kind.change(c, i) != nil {
					answered.Add(1)
				}
			})
		}
		if all.Wait(); answered.Load() == racers {
			s.duels++
			s.violations.Add("duel", s.same(i))
		}
	}
}

// same checks that all groups and all nodes answer the same about an item.
func (s *shared) same(i item) (differ error) {
	first := map[string]string{}
	for _, n := range s.cluster.Nodes {
		for _, tag := range tags() {
			for q, args := range i.kind.ask(i, tag) {
				question := fmt.Sprint(q)
				if i.kind == keys { // each group has one of its own
					question = tag
				}
				got := answerOf(s.answer(n, args...))
				if s.compared++; first[question] == "" {
					first[question] = got
				}
				if got != first[question] {
					differ = fmt.Errorf("%w: %s: %v answers %s, another %s", errGroupsDiffer, n.ID, args, got,
						first[question])
				}
			}
		}
	}
	return differ
}

// answer asks a node until it answers.
func (s *shared) answer(n *Node, args ...string) (a Answer) {
	require.NoError(s, poll(s.Context(), settledWithin, func() bool {
		a = s.asks[n].Call(args...)
		return a.Outcome == Answered
	}), "%s: %v: %v", n.ID, args, &a)
	return a
}

// torture runs the rounds.
func torture(t *testing.T, args ...string) *shared {
	args = append(args, "--blacklist-key", "blacklist")
	s := &shared{T: t, cluster: startedGroups(t, sharedGroups, args...), commands: map[string]int{},
		asks: map[*Node]*Client{}}
	w := Workload{start: time.Now(), seed: theSeed()}
	client := func(id int, timeout time.Duration, addrs ...string) *Client {
		w.addrs = addrs
		c := w.client(id, timeout)
		c.tally = &s.tally
		t.Cleanup(c.Close)
		return c
	}
	for id := range racers * len(kinds) {
		timeout := []time.Duration{quickTimeout, patientTimeout}[id%racers]
		s.sharers = append(s.sharers, &sharer{Client: client(id, timeout, s.cluster.Addrs()...), s: s,
			own: item{kinds[id/racers], id, 0}})
	}
	for i, n := range s.cluster.Nodes {
		s.asks[n] = client(-i, patientTimeout, n.Addr)
		s.answer(n, "SADD", "blacklist", "10.255.255.0/24") // once it knows the versions of all nodes
	}
	for number := range *rounds {
		s.round(number)
	}
	t.Logf("%d clients, %d faults, %d groups: %s answered; %s", len(s.sharers), *rounds, sharedGroups,
		ledger.Counts(s.commands), ledger.Counts(s.tally.totals().Words))
	t.Logf("%d answers about answered changes, %d duels, %d answers compared", s.verified.Load(), s.duels, s.compared)
	return s
}

// TestShared changes what concerns all groups while a node is paused, or the leader of the first group is killed. Two
// clients race on each kind of item, and repeat what has an unknown outcome. An answered change is in force in every
// group, and no group or node differs.
func TestShared(t *testing.T) {
	skipShort(t)
	violations, broken := torture(t).violations.List()
	require.Zero(t, broken, "%v", violations)
}

// TestSharedMistakes checks that TestShared finds known mistakes.
func TestSharedMistakes(t *testing.T) {
	skipShort(t)
	if !*mutations {
		t.Skip("takes minutes: with -chaos.mutations")
	}
	for fault, want := range map[string]error{"any-follow": errGroupsDiffer, "follow-later": errNotInForce} {
		t.Run(fault, func(t *testing.T) {
			violations, broken := torture(t, "--test-fault", fault).violations.List()
			require.True(t, slices.ContainsFunc(violations, func(v Violation) bool { return errors.Is(v.Err, want) }),
				"%v", violations)
			t.Logf("%d violations, the first: %.300s", broken, violations[0])
		})
	}
}
