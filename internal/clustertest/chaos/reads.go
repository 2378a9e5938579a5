package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

const (
	// readClients is how many clients read each kind of account. They are few, so that most of a history is decisions.
	readClients = 2
	// staleClients read under READONLY.
	staleClients = 2
)

var (
	// ErrUntold reports that the reply to a read under READONLY has no age.
	ErrUntold = errors.New("staleness untold")
	// ErrNoStaleRead reports that a node refused a read under READONLY, although such a read needs no leader.
	ErrNoStaleRead = errors.New("a read under READONLY was refused")
)

// Reads counts the outcomes of the readers. It is safe for use by several goroutines.
type Reads struct {
	mu     sync.Mutex
	tally  Tally // of reads alone, because answered reads would hide a gap between decisions
	counts ReadCounts
}

// ReadCounts are the numbers of the readers.
type ReadCounts struct {
	Linearizable int // answered
	AtFollowers  int // of these
	Unanswered   int // not applied, or with an unknown outcome
	Stale        int // under READONLY, with an age, judged
	Understated  int // of these
	Ageless      int // of these: the node did not know the age
	Oldest       time.Duration
}

func (r *Reads) count(how func(*ReadCounts)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	how(&r.counts)
}

// Counts returns the numbers so far.
func (r *Reads) Counts() ReadCounts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// reader has a connection to each node, and reads at any node.
type reader struct {
	*Client
	nodes []*Client
}

// reader makes a reader whose connections begin with a greeting, if one is given.
func (w *Workload) reader(id int, greeting ...string) *reader {
	r := &reader{Client: w.client(id, w.quick)}
	for _, addr := range w.addrs {
		c := *r.Client
		c.addrs, c.at, c.tally, c.greeting = []string{addr}, 0, &w.Reads.tally, greeting
		r.nodes = append(r.nodes, &c)
	}
	return r
}

func (r *reader) anyNode() *Client { return r.nodes[r.rng.IntN(len(r.nodes))] }

func (r *reader) close() {
	r.Close()
	for _, c := range r.nodes {
		c.Close()
	}
}

// spawnReaders runs the readers until ctx is over. Their ids begin at id.
func (w *Workload) spawnReaders(ctx context.Context, all *sync.WaitGroup, id int) {
	spawn := func(n int, work func(*reader), greeting ...string) {
		for range n {
			r := w.reader(id, greeting...)
			id++
			all.Go(func() {
				defer r.close()
				for r.pause(ctx, thinkTime) {
					work(r)
				}
			})
		}
	}
	for _, ring := range []*ledger.Ring{&w.Accounts, &w.Onces, &w.Mixed} {
		spawn(readClients, func(r *reader) { w.read(r, ring.Next()) })
	}
	spawn(staleClients, w.staleRead, "READONLY")
}

// read reads a limit that never refills, and adds the result to the limit's history.
func (w *Workload) read(r *reader, t *ledger.Trail) {
	verb := ledger.Inspect
	if r.rng.IntN(3) == 0 {
		verb = ledger.Exists
	}
	if op, ok := w.ask(r.anyNode(), t.Op(verb, 0)); ok {
		t.Add(op)
	}
}

// ask runs a linearizable read. It returns false without an answer.
func (w *Workload) ask(c *Client, op ledger.Op) (ledger.Op, bool) {
	command, key := "RL.INSPECT", op.Pairs[0].Key
	if op.Verb == ledger.Exists {
		command = "EXISTS"
	}
	a := c.Call(command, key)
	op.Client, op.At, op.CallNs, op.ReturnNs = c.ID, c.addrs[0], a.CallNs, a.ReturnNs
	followed := w.leads != nil && w.leads() != "" && w.leads() != c.addrs[0]
	w.Reads.count(func(n *ReadCounts) {
		switch {
		case a.Outcome != Answered:
			n.Unanswered++
		case followed:
			n.AtFollowers++
			fallthrough
		default:
			n.Linearizable++
		}
	})
	if a.Outcome == Refused || a.Outcome == Answered && !looked(&op, a.Reply) {
		w.Violations.Add(key, fmt.Errorf("%w: %s: %v", ErrBadReply, command, a.Reply))
	}
	return op, a.Outcome == Answered
}

// looked takes the numbers from the reply to a read of a limit.
func looked(op *ledger.Op, reply any) bool {
	if n, ok := reply.(int64); ok && op.Verb == ledger.Exists {
		op.Answer.Left = n
		return true
	}
	seen, ok := inspected(reply)
	op.Answer.Left = op.Max - seen.used
	return ok && op.Verb == ledger.Inspect && (!seen.found || seen.remaining == op.Answer.Left)
}

// inspection is a reply to RL.INSPECT.
type inspection struct {
	found           bool // false: the limiter is idle
	used, remaining int64
	aged            bool // the reply has stale_ms
	age             time.Duration
}

func inspected(reply any) (seen inspection, ok bool) {
	fields, isList := reply.([]any)
	for i := 0; i+1 < len(fields); i += 2 {
		n, _ := fields[i+1].(int64)
		switch fields[i] {
		case "used":
			seen.found, seen.used = true, n
		case "remaining":
			seen.remaining = n
		case "stale_ms":
			seen.aged, seen.age = true, time.Duration(n)*time.Millisecond
		}
	}
	return seen, (isList || reply == nil) && len(fields)%2 == 0
}

// unknownAge is the age that a node reports if it does not know the age: a hundred years.
const unknownAge = 100 * 365 * 24 * time.Hour

// staleRead reads under READONLY an account whose use only grows.
func (w *Workload) staleRead(r *reader) {
	ring := []*ledger.Ring{&w.Accounts, &w.Onces}[r.rng.IntN(2)]
	t, c := ring.Latest(), r.anyNode()
	if t == nil {
		return
	}
	a := c.Call("RL.INSPECT", t.Name)
	seen, ok := inspected(a.Reply)
	switch text, _ := a.Reply.(ErrorReply); {
	case strings.HasPrefix(string(text), "CLUSTERDOWN") && !w.spread:
		w.Violations.Add(t.Name, fmt.Errorf("%w at %s: %s", ErrNoStaleRead, c.addrs[0], text))
	case a.Outcome == Refused, a.Outcome == Answered && !ok:
		w.Violations.Add(t.Name, fmt.Errorf("%w: RL.INSPECT: %v", ErrBadReply, a.Reply))
	case a.Outcome == Answered && !seen.aged && len(w.addrs) > 1:
		w.Violations.Add(t.Name, fmt.Errorf("%w by %s", ErrUntold, c.addrs[0]))
	case a.Outcome == Answered:
		t.AddStale(ledger.StaleRead{At: c.addrs[0], CallNs: a.CallNs, ReturnNs: a.ReturnNs, Used: seen.used,
			Age: seen.age})
	}
}
