package bench

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/weir-project/weir/bench/servers"
)

const (
	// probeInterval is short enough for some hundred samples a cell, and long enough
	// to be no load beside it.
	probeInterval = 10 * time.Millisecond
	// maxUntilDenied is more than any limit here allows at once, also when a slow
	// machine lets it refill meanwhile.
	maxUntilDenied = 1000
	// verifyKey is no key of the load's: those end in digits.
	verifyKey = keyPrefix + "verify "
)

// caller asks one request at a time.
type caller struct {
	conn net.Conn
	in   *answers
}

func call(addr string) (*caller, error) {
	conn, err := net.DialTimeout("tcp", addr, servers.DialTimeout)
	if err != nil {
		return nil, err
	}
	return &caller{conn, newAnswers(conn, 1)}, nil
}

// ask sends a command for a key.
func (c *caller) ask(command Command, key string, cost int) (admitted bool, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(servers.ReplyTimeout)); err != nil {
		return false, err
	}
	if _, err := c.conn.Write(encodeRequest(command.For(key, cost))); err != nil {
		return false, err
	}
	got, err := c.in.next()
	if err != nil {
		return false, err
	}
	if got.kind == '-' {
		return false, fmt.Errorf("%w: %s", ErrNotADecision, got.said)
	}
	return command.Reply.Read(got)
}

// verify makes sure that a command decides: the first request of a key is admitted,
// and, from a limiter that could, one of many is denied.
func (c *caller) verify(command Command, part part) error {
	key := fmt.Sprint(verifyKey, part.workload, time.Now().UnixNano()) // unused, also where nobody emptied the server
	for i := range maxUntilDenied {
		admitted, err := c.ask(command, key, part.cost)
		switch {
		case err != nil:
			return err
		case i == 0 && !admitted:
			return fmt.Errorf("%w: an unused key is denied", ErrNotADecision)
		case !admitted || !command.Reply.Limits || part.workload == Lasting:
			return nil
		}
	}
	return fmt.Errorf("%w: %d requests for one key admitted at once", ErrNoLimit, maxUntilDenied)
}

// probes is what a prober saw.
type probes struct{ asked, admitted int }

// prober asks for random keys beside a load and reads the replies, which the load
// generator does not.
type prober struct {
	cancel  context.CancelFunc // ends it after the answer that it waits for
	abandon context.CancelFunc // ends it at once
	done    chan struct{}      // closed when the goroutine has ended; then seen and err are settled
	seen    probes
	err     error
}

func startProber(ctx context.Context, addr string, c Command, l Load) *prober {
	whole, abandon := context.WithCancel(ctx)
	ctx, cancel := context.WithCancel(whole)
	p := &prober{cancel: cancel, abandon: abandon, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = p.run(ctx, whole, addr, c, l)
	}()
	return p
}

// stop ends the prober and returns what it saw.
func (p *prober) stop() (probes, error) {
	p.cancel()
	<-p.done
	p.abandon()
	return p.seen, p.err
}

// run asks until ctx ends. When whole ends it does not wait for an answer any more.
func (p *prober) run(ctx, whole context.Context, addr string, c Command, l Load) error {
	conn, err := call(addr)
	if err != nil {
		return err
	}
	defer conn.conn.Close()
	defer context.AfterFunc(whole, func() { conn.conn.Close() })()
	next := time.NewTicker(probeInterval)
	defer next.Stop()
	key := newPicker(l, nil).of(0)
	for {
		admitted, err := conn.ask(c, l.key(keyPrefix, key()), max(l.Cost, 1))
		if err != nil {
			return err
		}
		p.seen.asked++
		if admitted {
			p.seen.admitted++
		}
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		}
	}
}
