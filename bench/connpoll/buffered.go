package connpoll

import (
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// bufferedConns polls connections of any kind. A goroutine for each connection reads ahead into a buffer.
type bufferedConns struct {
	conns   []net.Conn
	buffers []readBuffer
	arrived chan int // numbers of connections whose buffers were filled
	filled  []int    // connections whose buffer may be full: readBuffer.full says so
	readers sync.WaitGroup
}

var _ Poller = (*bufferedConns)(nil)

// readBuffer holds data from a connection. Its reader does not touch it while it is full.
type readBuffer struct {
	unread  []byte
	err     error // follows the data
	full    bool
	emptied chan struct{}
}

// bufferBytes holds some hundred answers.
const bufferBytes = 16 << 10

func newBuffered(conns []net.Conn) *bufferedConns {
	s := &bufferedConns{conns: conns, buffers: make([]readBuffer, len(conns)), arrived: make(chan int, len(conns))}
	for i, conn := range conns {
		one := &s.buffers[i]
		one.emptied = make(chan struct{}, 1)
		s.readers.Go(func() {
			buf := make([]byte, bufferBytes)
			for more := true; more && one.err == nil; _, more = <-one.emptied {
				n, err := conn.Read(buf)
				one.unread, one.err = buf[:n], err
				s.arrived <- i
			}
		})
	}
	return s
}

func (s *bufferedConns) Wait(d time.Duration) ([]int, error) {
	s.filled = slices.DeleteFunc(s.filled, func(i int) bool { return !s.buffers[i].full })
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

func (s *bufferedConns) fill(i int) {
	s.buffers[i].full = true
	s.filled = append(s.filled, i)
}

func (s *bufferedConns) Read(i int, b []byte) (int, error) {
	one := &s.buffers[i]
	if !one.full {
		return 0, ErrNotYet
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

func (s *bufferedConns) Write(i int, b []byte) (int, error) {
	if err := s.conns[i].SetWriteDeadline(time.Now().Add(longestWrite)); err != nil {
		return 0, err
	}
	n, err := s.conns[i].Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return n, err
}

func (s *bufferedConns) Close() error {
	var errs []error
	for i, conn := range s.conns {
		errs = append(errs, conn.Close())
		close(s.buffers[i].emptied)
	}
	s.readers.Wait()
	return errors.Join(errs...)
}
