package bench

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/weir-project/weir/bench/servers"
)

const (
	// probeInterval is short enough for some hundred samples in a cell, and long enough not to be a load.
	probeInterval = 10 * time.Millisecond
	// maxUntilDenied is more than any limit here allows at once, even if it refills meanwhile on a slow machine.
	maxUntilDenied = 1000
	// verifyKey is not a key of the load, because those end in digits.
	verifyKey = keyPrefix + "verify "
)

// caller sends one request at a time.
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
func (c *caller) ask(command Command, key string) (admitted bool, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(servers.ReplyTimeout)); err != nil {
		return false, err
	}
	if _, err := c.conn.Write(encodeRequest(command.For(key))); err != nil {
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

// verify checks that a command decides. The first request of a key must be admitted. A limiter must deny one of many
// requests.
func (c *caller) verify(command Command, w Workload) error {
	key := fmt.Sprint(verifyKey, w, time.Now().UnixNano()) // unused, even if the server was not emptied
	for i := range maxUntilDenied {
		admitted, err := c.ask(command, key)
		switch {
		case err != nil:
			return err
		case i == 0 && !admitted:
			return fmt.Errorf("%w: an unused key is denied", ErrNotADecision)
		case !admitted || !command.Reply.Limits || !w.denies():
			return nil
		}
	}
	return fmt.Errorf("%w: %d requests for one key admitted at once", ErrNoLimit, maxUntilDenied)
}

// probes is the result of a prober.
type probes struct{ asked, admitted int }

// prober sends requests for random keys during a load and reads the replies, which the load generator does not.
type prober struct {
	cancel  context.CancelFunc // ends it after the pending answer
	abandon context.CancelFunc // ends it at once
	done    chan struct{}      // closed when the goroutine has ended; then seen and err are final
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

// stop ends the prober and returns its result.
func (p *prober) stop() (probes, error) {
	p.cancel()
	<-p.done
	p.abandon()
	return p.seen, p.err
}

// run sends requests until ctx ends. After the end of whole it does not wait for an answer.
func (p *prober) run(ctx, whole context.Context, addr string, c Command, l Load) error {
	conn, err := call(addr)
	if err != nil {
		return err
	}
	defer conn.conn.Close()
	defer context.AfterFunc(whole, func() { conn.conn.Close() })()
	next := time.NewTicker(probeInterval)
	defer next.Stop()
	key := newPicker(l).of(0)
	for {
		admitted, err := conn.ask(c, l.key(key()))
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
