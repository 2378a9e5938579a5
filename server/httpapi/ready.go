package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weir-project/weir/server/service"
)

// readyWait bounds the time in which /readyz waits for the committed state to be applied. A ReadIndex takes a few round
// trips, and probes time out after a second by default.
const readyWait = time.Second

// probes answers readiness probes.
type probes struct {
	*service.Service
	groups groupProbes
}

// readiness is one line of /readyz.
type readiness struct {
	what string
	ok   bool
	said string
}

func (r readiness) String() string {
	if r.ok {
		return "[+]" + r.what + " " + r.said
	}
	return "[-]" + r.what + " " + r.said
}

// answer reports whether clients should use this node.
func (s *probes) answer(w http.ResponseWriter, _ *http.Request) {
	switch {
	case s.Replica != nil:
		status, text := s.replicaReady()
		writePlain(w, status, text)
	case s.Draining.Load():
		writePlain(w, http.StatusServiceUnavailable, "draining")
	default:
		writePlain(w, http.StatusOK, "ok")
	}
}

// ready reports whether /readyz answers 200.
func (s *probes) ready() bool {
	if s.Replica == nil {
		return !s.Draining.Load()
	}
	status, _ := s.replicaReady()
	return status == http.StatusOK
}

// replicaReady checks three conditions: this node serves as a member, the cluster has a leader, and this node has
// applied the entries committed before the probe.
func (s *probes) replicaReady() (status int, text string) {
	status = http.StatusOK
	var lines []string
	for _, r := range s.readiness() {
		lines = append(lines, r.String())
		if !r.ok {
			status = http.StatusServiceUnavailable
		}
	}
	return status, strings.Join(lines, "\n")
}

func (s *probes) readiness() []readiness {
	t := s.Replica.Topology()
	node := readiness{"node", true, "ok"}
	switch {
	case s.Draining.Load():
		node = readiness{"node", false, "draining"}
	case t.Member(t.Self) == nil:
		node = readiness{"node", false, "not a member of the cluster yet"}
	case t.Ended() > 0: // other nodes serve these groups
		node = readiness{"node", false, fmt.Sprintf("%d of %d groups have ended on this node", t.Ended(),
			len(t.Groups))}
	}
	return []readiness{node, groupsReady(t), s.groupsCurrent(t)}
}

// readyProbe coalesces probes into shared ReadIndex calls, because any client may request /readyz. One call runs at a
// time, and the next call serves all probes that arrived meanwhile.
type readyProbe struct {
	mu      sync.Mutex
	next    *probeRound // nil: no probe waits
	running bool
}

// probeRound is one call and the probes that wait for its result.
type probeRound struct {
	done chan struct{}
	err  error
}

var errNotApplied = errors.New("no answer in time")

// await returns the result of the call, or errNotApplied when late ends first.
func (r *probeRound) await(late context.Context) error {
	select {
	case <-r.done:
		return r.err
	default: // a result counts also when late has ended
	}
	select {
	case <-r.done:
		return r.err
	case <-late.Done():
		return errNotApplied
	}
}

func (p *readyProbe) join(question func() error) *probeRound {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = &probeRound{done: make(chan struct{})}
	}
	if !p.running {
		p.running = true
		go p.run(question)
	}
	return p.next
}

// run calls question until no probe waits. Each call must bound its own duration.
func (p *readyProbe) run(question func() error) {
	for r := p.begin(); r != nil; r = p.begin() {
		r.err = question()
		close(r.done)
	}
}

func (p *readyProbe) begin() *probeRound {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.next
	p.next, p.running = nil, r != nil
	return r
}
