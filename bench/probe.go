package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	redigo "github.com/gomodule/redigo/redis"
)

const (
	// probeInterval is short enough for some hundred samples a cell, and long enough
	// to be no load beside it.
	probeInterval = 10 * time.Millisecond
	// maxUntilDenied is more than any limit here allows at once, also when a slow
	// machine lets it refill meanwhile.
	maxUntilDenied = 1000
	// verifyKey is no key of the load's: those end in digits.
	verifyKey = keyPrefix + "verify"
)

// ask sends a command for a key.
func ask(conn redigo.Conn, c Command, key string) (admitted bool, err error) {
	reply, err := do(conn, c.For(key)...)
	if err != nil {
		return false, err
	}
	return c.Reply.Read(reply)
}

// verify makes sure that a command decides: the first request of a key is admitted,
// and, from a limiter, one of many is denied.
func verify(conn redigo.Conn, c Command) error {
	for i := range maxUntilDenied {
		admitted, err := ask(conn, c, verifyKey)
		switch {
		case err != nil:
			return err
		case i == 0 && !admitted:
			return fmt.Errorf("%w: an unused key is denied", ErrNotADecision)
		case !admitted || !c.Reply.Limits:
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
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended; then seen and err are settled
	seen   probes
	err    error
}

func startProber(ctx context.Context, addr string, c Command, keys int) *prober {
	ctx, cancel := context.WithCancel(ctx)
	p := &prober{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = p.run(ctx, addr, c, keys)
	}()
	return p
}

// stop ends the prober and returns what it saw.
func (p *prober) stop() (probes, error) {
	p.cancel()
	<-p.done
	return p.seen, p.err
}

func (p *prober) run(ctx context.Context, addr string, c Command, keys int) error {
	conn, err := dial(addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	next := time.NewTicker(probeInterval)
	defer next.Stop()
	for {
		admitted, err := ask(conn, c, fmt.Sprintf("%s%012d", keyPrefix, rand.IntN(keys)))
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
