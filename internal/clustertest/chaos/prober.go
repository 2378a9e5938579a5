package chaos

import (
	"context"
	"sync"
	"time"
)

const (
	// probeClients ask continuously, on connections spread over all nodes.
	probeClients = 8
	// probePause is the pause between two requests of one client. Together the clients resolve about a millisecond.
	probePause = 6 * time.Millisecond
	// The probed limit is never reached.
	probeRate = "1000000"
)

// Prober asks for decisions continuously, and records when answers arrived.
type Prober struct {
	tally Tally
	start time.Time
	stop  context.CancelFunc
	all   sync.WaitGroup

	mu      sync.Mutex
	answers []span // by return
}

// span is a call and its return, from the start of the prober.
type span struct{ call, ret time.Duration }

// Probe starts to ask the nodes with these addresses, until Stop.
func Probe(addrs []string) *Prober {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Prober{start: time.Now(), stop: cancel}
	w := &Workload{start: p.start, addrs: addrs}
	for i := range probeClients {
		c := w.client(i, patientTimeout)
		c.tally = &p.tally
		p.all.Go(func() { p.ask(ctx, c) })
	}
	return p
}

func (p *Prober) ask(ctx context.Context, c *Client) {
	defer c.Close()
	for c.pause(ctx, probePause) {
		a := c.Call("RL.TOKENBUCKET", "probe", probeRate, probeRate)
		if a.Outcome == Answered {
			p.mu.Lock()
			p.answers = append(p.answers, span{time.Duration(a.CallNs), time.Duration(a.ReturnNs)})
			p.mu.Unlock()
		}
	}
}

// Stop ends the requests, and returns the counts of their answers.
func (p *Prober) Stop() Totals {
	p.stop()
	p.all.Wait()
	return p.tally.totals()
}

// Now returns the time of the prober's clock.
func (p *Prober) Now() time.Duration { return time.Since(p.start) }

// FirstAfter waits for an answer to a request sent after t, and returns its arrival time.
func (p *Prober) FirstAfter(ctx context.Context, t, timeout time.Duration) (time.Duration, error) {
	var first time.Duration
	err := poll(ctx, timeout, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for i := len(p.answers) - 1; i >= 0 && p.answers[i].ret > t; i-- {
			if p.answers[i].call > t {
				first = p.answers[i].ret
			}
		}
		return first > 0
	})
	return first, err
}

// LongestGap returns the longest time between from and to without an answer.
func (p *Prober) LongestGap(from, to time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var longest time.Duration
	last := from
	for _, a := range p.answers {
		if a.ret > from && a.ret < to {
			longest = max(longest, a.ret-last)
			last = max(last, a.ret)
		}
	}
	return max(longest, to-last)
}
