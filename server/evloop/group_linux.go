package evloop

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// interest is the set of events that a connection is watched for. It is edge-triggered, so that no further call is
// needed to receive the next event.
const interest = syscall.EPOLLIN | syscall.EPOLLOUT | syscall.EPOLLRDHUP | edgeTriggered

// edgeTriggered is EPOLLET, which package syscall defines as a negative number.
const edgeTriggered = 1 << 31

// Group is a set of connections and the goroutines that poll for them.
type Group struct {
	epoll  int
	wakeFD int // an eventfd: Close writes to it, so that the pollers wake up and end
	closed atomic.Bool
	ended  sync.WaitGroup // counts the running pollers

	helpers atomic.Int32

	mu     sync.RWMutex
	conns  []*Conn // by file descriptor
	serial int32   // serial of the last connection
}

// New starts a group with one poller.
func New() (*Group, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	g := &Group{epoll: epoll}
	if g.wakeFD, err = eventFD(); err == nil {
		err = g.watch(g.wakeFD, 0, syscall.EPOLLIN)
	}
	if err != nil {
		if g.wakeFD >= 0 {
			_ = syscall.Close(g.wakeFD)
		}
		_ = syscall.Close(epoll)
		return nil, err
	}
	g.ended.Add(1)
	go (&poller{group: g, idleAt: time.Now()}).run()
	return g, nil
}

func eventFD() (int, error) {
	fd, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if errno != 0 {
		return -1, fmt.Errorf("eventfd: %w", errno)
	}
	return int(fd), nil
}

// watch registers a descriptor. Its events carry the descriptor and the serial.
func (g *Group) watch(fd int, serial int32, events uint32) error {
	err := syscall.EpollCtl(g.epoll, syscall.EPOLL_CTL_ADD, fd,
		&syscall.EpollEvent{Events: events, Fd: int32(fd), Pad: serial})
	if err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// maxHelpers returns the maximum number of helpers beside the waiting poller.
func maxHelpers() int32 { return int32(runtime.GOMAXPROCS(0)) - 1 }

// Adopt takes over a TCP or Unix connection. The caller must no longer use nc. No input is read before Start. After an
// error nc is unchanged.
func (g *Group) Adopt(nc net.Conn) (*Conn, error) {
	raw, ok := nc.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("%w: %T", ErrUnsupported, nc)
	}
	fd, err := duplicate(raw)
	if err != nil {
		return nil, err
	}
	c := &Conn{group: g, fd: fd, local: nc.LocalAddr(), remote: nc.RemoteAddr()}
	c.state.Store(running) // until Start
	_ = nc.Close()         // the duplicate stays open
	return c, nil
}

// duplicate returns a second descriptor of the connection, which the Go runtime does not poll.
func duplicate(nc syscall.Conn) (fd int, err error) {
	raw, err := nc.SyscallConn()
	if err != nil {
		return -1, err
	}
	var dup uintptr
	var errno syscall.Errno
	err = raw.Control(func(fd uintptr) {
		dup, _, errno = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_DUPFD_CLOEXEC, 0)
	})
	if err == nil && errno != 0 {
		err = fmt.Errorf("dup: %w", errno)
	}
	return int(dup), err
}

// put registers c for its descriptor. A nil c removes the registration.
func (g *Group) put(fd int, c *Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for fd >= len(g.conns) {
		g.conns = append(g.conns, nil)
	}
	if g.conns[fd] = c; c != nil {
		g.serial++
		c.serial = g.serial
	}
}

// of returns the connection of an event. It returns nil for the eventfd, and for a connection that was closed
// meanwhile, even if its descriptor was reused.
func (g *Group) of(e syscall.EpollEvent) *Conn {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if int(e.Fd) >= len(g.conns) {
		return nil
	}
	if c := g.conns[e.Fd]; c != nil && c.serial == e.Pad {
		return c
	}
	return nil
}

// Close ends the pollers. The caller has closed all connections, and their read cycles have returned.
func (g *Group) Close() error {
	if g.closed.Swap(true) {
		return nil
	}
	one := [8]byte{1}
	_, writeErr := syscall.Write(g.wakeFD, one[:])
	g.ended.Wait()
	return errors.Join(writeErr, syscall.Close(g.wakeFD), syscall.Close(g.epoll))
}
