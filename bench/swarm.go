package bench

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/weir-project/weir/bench/servers"
)

// swarm is a set of connections that send pipelines and read the answers. Unlike redis-benchmark, it fills keys in
// order, keeps to a rate, and measures the delay of each answer.
type swarm struct {
	links    []*link
	pipeline int
}

// link is one connection of a swarm. One goroutine at a time sends, one receives.
type link struct {
	conn    net.Conn // nil during and after an open loop
	in      *answers
	out     *requests
	key     func() int // chooses the key of the next request
	read    time.Time  // when the read deadline was last set
	written time.Time  // when the write deadline was last set
}

// deadlineEvery is the interval at which a deadline is moved. Moving it for every pipeline would cost as much as
// reading the pipeline.
const deadlineEvery = time.Second

// newSwarm connects. The connections end with ctx or close.
func newSwarm(ctx context.Context, addr string, s sender, keys *picker) (*swarm, error) {
	all := &swarm{pipeline: s.load.Pipeline}
	dialer := net.Dialer{Timeout: servers.DialTimeout}
	for i := range s.load.Clients {
		conn, err := dialer.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		all.links = append(all.links, newLink(conn, s.pipeline(), keys.of(i)))
	}
	return all, nil
}

func newLink(conn net.Conn, out *requests, key func() int) *link {
	return &link{conn: conn, in: newAnswers(conn, len(out.expects)), out: out, key: key}
}

func (s *swarm) close() error {
	var errs []error
	for _, l := range s.links {
		if l.conn != nil {
			errs = append(errs, l.conn.Close())
		}
	}
	return errors.Join(errs...)
}

func (l *link) send(now time.Time) error {
	if now.Sub(l.written) > deadlineEvery {
		l.written = now
		if err := l.conn.SetWriteDeadline(now.Add(servers.ReplyTimeout)); err != nil {
			return err
		}
	}
	_, err := l.conn.Write(l.out.encoded)
	return err
}

// receive reads the answers to a pipeline. It waits for at most [servers.ReplyTimeout], counted from at most
// deadlineEvery before now.
func (l *link) receive(now time.Time) (tally, error) {
	if now.Sub(l.read) > deadlineEvery {
		l.read = now
		if err := l.conn.SetReadDeadline(now.Add(servers.ReplyTimeout)); err != nil {
			return tally{}, err
		}
	}
	return l.in.tallied(l.out.expects)
}

// greet gets an answer on every connection, so that the server has accepted all of them.
func (s *swarm) greet(ctx context.Context) error {
	return s.each(ctx, func(_ context.Context, _ int, l *link) error {
		l.nextKeys()
		if err := l.send(time.Now()); err != nil {
			return err
		}
		answers, err := l.receive(time.Now())
		return errors.Join(err, answers.check(s.pipeline))
	})
}

// nextKeys chooses the keys of the next pipeline.
func (l *link) nextKeys() {
	for i := range l.out.slots {
		l.out.setKey(i, l.key())
	}
}

// each runs do for every connection at once. If one fails or ctx ends, it closes all connections, so that no call waits
// in vain.
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
