package bench

import (
	"bufio"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// swarm is many connections that send pipelines of one command, and read the
// answers. It is what redis-benchmark is not: it fills keys in order, keeps to a
// rate, and knows how late each answer was.
type swarm struct {
	links    []*link
	pipeline int
}

// link is one connection of a swarm. One goroutine at a time sends, one receives.
type link struct {
	conn net.Conn
	in   *bufio.Reader
	out  *pipeline
	n    int // requests in a pipeline
}

// newSwarm connects. The connections end with ctx, or by close.
func newSwarm(ctx context.Context, addr string, c Command, clients, requests int) (*swarm, error) {
	s := &swarm{pipeline: requests}
	dialer := net.Dialer{Timeout: dialTimeout}
	for range clients {
		conn, err := dialer.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.links = append(s.links, &link{conn: conn, in: bufio.NewReader(conn), out: newPipeline(c, requests), n: requests})
	}
	return s, nil
}

func (s *swarm) close() error {
	var errs []error
	for _, l := range s.links {
		errs = append(errs, l.conn.Close())
	}
	return errors.Join(errs...)
}

func (l *link) send() error {
	if err := l.conn.SetWriteDeadline(time.Now().Add(replyTimeout)); err != nil {
		return err
	}
	_, err := l.conn.Write(l.out.requests)
	return err
}

func (l *link) receive() (tally, error) {
	if err := l.conn.SetReadDeadline(time.Now().Add(replyTimeout)); err != nil {
		return tally{}, err
	}
	return readAnswers(l.in, l.n)
}

// randomKeys makes the next pipeline one for keys below a number.
func (l *link) randomKeys(keys int) {
	for i := range l.n {
		l.out.setKey(i, rand.IntN(keys))
	}
}

// each runs do for every connection at once. When one fails, or ctx ends, all
// connections break, so that none is waited for in vain.
func (s *swarm) each(ctx context.Context, do func(ctx context.Context, i int, l *link) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	release := context.AfterFunc(ctx, func() { _ = s.close() })
	defer release()
	var all sync.WaitGroup
	for i, l := range s.links {
		all.Go(func() {
			if err := do(ctx, i, l); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
