package bench

import (
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// spooled are wires of any connections: a goroutine each reads for who takes it.
type spooled struct {
	conns   []net.Conn
	spools  []spool
	arrived chan int // whose spool was filled
	filled  []int    // those that were, unless full says otherwise
	readers sync.WaitGroup
}

var _ wires = (*spooled)(nil)

// spool is what was read from a connection. While it is full its reader leaves it alone.
type spool struct {
	unread  []byte
	err     error // behind it
	full    bool
	emptied chan struct{}
}

// spoolBytes are some hundred answers.
const spoolBytes = 16 << 10

func newSpooled(conns []net.Conn) *spooled {
	s := &spooled{conns: conns, spools: make([]spool, len(conns)), arrived: make(chan int, len(conns))}
	for i, conn := range conns {
		one := &s.spools[i]
		one.emptied = make(chan struct{}, 1)
		s.readers.Go(func() {
			buf := make([]byte, spoolBytes)
			for more := true; more && one.err == nil; _, more = <-one.emptied {
				n, err := conn.Read(buf)
				one.unread, one.err = buf[:n], err
				s.arrived <- i
			}
		})
	}
	return s
}

func (s *spooled) wait(d time.Duration) ([]int, error) {
	s.filled = slices.DeleteFunc(s.filled, func(i int) bool { return !s.spools[i].full })
	if len(s.filled) == 0 && d > 0 {
		late := time.NewTimer(d)
		defer late.Stop()
		select {
		case i := <-s.arrived:
			s.fill(i)
		case <-late.C:
		}
	}
	for {
		select {
		case i := <-s.arrived:
			s.fill(i)
		default:
			return s.filled, nil
		}
	}
}

func (s *spooled) fill(i int) {
	s.spools[i].full = true
	s.filled = append(s.filled, i)
}

func (s *spooled) read(i int, b []byte) (int, error) {
	one := &s.spools[i]
	if !one.full {
		return 0, errNotYet
	}
	n := copy(b, one.unread)
	one.unread = one.unread[n:]
	switch {
	case len(one.unread) > 0:
		return n, nil
	case one.err != nil:
		return n, one.err
	}
	one.full = false
	one.emptied <- struct{}{}
	return n, nil
}

func (s *spooled) write(i int, b []byte) (int, error) {
	if err := s.conns[i].SetWriteDeadline(time.Now().Add(longestPause)); err != nil {
		return 0, err
	}
	n, err := s.conns[i].Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return n, err
}

func (s *spooled) close() error {
	var errs []error
	for i, conn := range s.conns {
		errs = append(errs, conn.Close())
		close(s.spools[i].emptied)
	}
	s.readers.Wait()
	return errors.Join(errs...)
}
