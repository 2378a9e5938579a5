package connpoll

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// New takes over connections. It polls those of the operating system from this thread alone, and changes the thread for
// that. It polls other connections as on other systems.
func New(conns []net.Conn) (Poller, error) {
	for _, conn := range conns {
		if _, ok := conn.(syscall.Conn); !ok {
			return newBuffered(conns), nil
		}
	}
	p, err := newEpoll(conns)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	// Otherwise the kernel delays the end of a wait by 50 µs, to wake several threads at once.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return p, nil
}

// epollConns polls connections outside the Go runtime, which would wake a thread for each answer, and that thread
// another.
type epollConns struct {
	epoll  int
	poll   [1]unix.PollFd // of epoll
	fds    []int
	events []unix.EpollEvent
	ready  []int
}

var _ Poller = (*epollConns)(nil)

// newEpoll takes over connections. After an error it also returns the poller, which the caller must close.
func newEpoll(conns []net.Conn) (*epollConns, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return &epollConns{epoll: -1}, fmt.Errorf("epoll_create1: %w", err)
	}
	p := &epollConns{epoll: epoll, events: make([]unix.EpollEvent, len(conns))}
	p.poll[0] = unix.PollFd{Fd: int32(epoll), Events: unix.POLLIN}
	for i, conn := range conns {
		fd, err := detach(conn)
		if err != nil {
			return p, err
		}
		p.fds = append(p.fds, fd)
		event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
			return p, fmt.Errorf("epoll_ctl: %w", err)
		}
	}
	return p, nil
}

// detach removes a connection from the Go runtime. It closes the original at once, because a load may have half as many
// connections as a process may open.
func detach(conn net.Conn) (fd int, err error) {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Control(func(open uintptr) { fd, err = unix.FcntlInt(open, unix.F_DUPFD_CLOEXEC, 0) })
	if err := errors.Join(failed, err); err != nil {
		return 0, fmt.Errorf("dup: %w", err)
	}
	_ = conn.Close() // the duplicate stays open
	return fd, nil
}

// Wait uses ppoll, because epoll_wait counts in milliseconds and epoll_pwait2 is not available everywhere.
func (p *epollConns) Wait(d time.Duration) ([]int, error) {
	if d > 0 {
		limit := unix.NsecToTimespec(int64(d))
		if _, err := unix.Ppoll(p.poll[:], &limit, nil); err != nil && err != unix.EINTR {
			return nil, fmt.Errorf("ppoll: %w", err)
		}
	}
	n, err := unix.EpollWait(p.epoll, p.events, 0)
	if err != nil && err != unix.EINTR {
		return nil, fmt.Errorf("epoll_wait: %w", err)
	}
	p.ready = p.ready[:0]
	for _, event := range p.events[:max(n, 0)] {
		p.ready = append(p.ready, int(event.Fd))
	}
	return p.ready, nil
}

func (p *epollConns) Read(i int, b []byte) (int, error) {
	n, err := unix.Read(p.fds[i], b)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return 0, ErrNotYet
	case err != nil:
		return 0, fmt.Errorf("read: %w", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (p *epollConns) Write(i int, b []byte) (int, error) {
	n, err := unix.Write(p.fds[i], b)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("write: %w", err)
	}
	return n, nil
}

func (p *epollConns) Close() error {
	var errs []error
	for _, fd := range p.fds {
		errs = append(errs, unix.Close(fd))
	}
	if p.epoll >= 0 {
		errs = append(errs, unix.Close(p.epoll))
	}
	return errors.Join(errs...)
}
