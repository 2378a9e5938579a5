package evloop

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// Values of Conn.state.
const (
	idle    int32 = iota // no read cycle runs; the next event starts one
	running              // a read cycle runs
	again                // a read cycle runs, and an event arrived since it began
)

// readsPerCycle is the number of reads after which a read cycle detaches from the poller. A client that sends without
// a pause therefore does not delay others.
const readsPerCycle = 4

// Conn is a connection of a Group. It is a net.Conn whose Read and Write block.
type Conn struct {
	group         *Group
	local, remote net.Addr
	state         atomic.Int32

	// The fields below belong to the goroutine that runs the read cycle.
	readCycle func() (more bool)
	poller    *poller // the poller whose goroutine runs the read cycle, or nil
	// drained means that the last read took all available bytes, so that another read would fail until the next event.
	drained bool
	reads   int // reads since the connection was claimed

	ending             atomic.Bool // the peer sends no more: read on to the end
	overdue            atomic.Bool // the read deadline has passed
	writeBy            atomic.Int64
	readDeadline       readDeadline // timer of the read deadline
	readable, writable waiter
	ended              waiter // for AwaitEnd, which does not read

	life   sync.RWMutex // read-locked while fd is in use
	fd     int          // -1: closed
	serial int32        // assigned by the group; distinguishes connections that had the same fd
}

// Start makes pollers call readCycle whenever there may be input, on one goroutine at a time. readCycle must read from
// CycleConn until it returns ErrAgain, and then return true. It returns false after it has closed the connection.
func (c *Conn) Start(readCycle func() (more bool)) error {
	c.readCycle = readCycle
	if err := c.watch(); err != nil {
		return err
	}
	if !c.endClaim() { // an event has already arrived
		go c.runCycles(nil)
	}
	return nil
}

// watch registers the connection with the pollers.
func (c *Conn) watch() error {
	c.life.RLock()
	defer c.life.RUnlock()
	if c.fd < 0 {
		return net.ErrClosed
	}
	c.group.put(c.fd, c)
	return c.group.watch(c.fd, c.serial, interest)
}

// note records an event, and wakes the goroutines that wait for it.
func (c *Conn) note(events uint32) {
	const end = syscall.EPOLLRDHUP | syscall.EPOLLHUP | syscall.EPOLLERR
	if events&end != 0 {
		c.ending.Store(true)
		c.ended.wake()
	}
	if events&(syscall.EPOLLIN|end) != 0 {
		c.readable.wake()
	}
	if events&(syscall.EPOLLOUT|end) != 0 {
		c.writable.wake()
	}
}

// claim makes the caller run the read cycle. If a read cycle already runs, claim tells it to run again and returns
// false.
func (c *Conn) claim() bool {
	for {
		switch c.state.Load() {
		case idle:
			if c.state.CompareAndSwap(idle, running) {
				return true
			}
		case running:
			if c.state.CompareAndSwap(running, again) {
				return false
			}
		default:
			return false
		}
	}
}

// runCycles runs the read cycle on the goroutine of p, or on the caller's own goroutine if p is nil. It repeats the
// read cycle if an event arrived meanwhile. It returns true if p continues on this goroutine, and false if the read
// cycle has detached or p is nil. The caller has claimed the connection.
func (c *Conn) runCycles(p *poller) (kept bool) {
	c.reads = 0 // counts all repeated read cycles, because other connections wait behind each of them
	for {
		c.poller, c.drained = p, false
		more := c.readCycle()
		p = c.poller
		if !more || c.endClaim() {
			return p != nil
		}
	}
}

// endClaim ends the claim. If an event arrived meanwhile, it returns false, and the caller runs the read cycle again.
func (c *Conn) endClaim() bool {
	c.poller = nil
	return c.state.CompareAndSwap(running, idle) || !c.state.CompareAndSwap(again, running)
}

// Detach lets another goroutine take over the poller, because the rest of the read cycle may block.
func (c *Conn) Detach() {
	if p := c.poller; p != nil {
		c.poller = nil
		go p.run()
	}
}

// startCycle makes the connection run a read cycle soon, without an event. It wakes a blocked Read. If no read cycle
// runs, it starts one on a separate goroutine, otherwise the running one repeats. Any goroutine may call it.
func (c *Conn) startCycle() {
	c.readable.wake()
	if c.claim() {
		go c.runCycles(nil)
	}
}

// CycleConn is a connection as its read cycle uses it. Read takes the available bytes and returns ErrAgain if there
// are none. Write detaches if it must wait.
type CycleConn struct{ c *Conn }

// CycleConn returns the connection for the goroutine that runs the read cycle.
func (c *Conn) CycleConn() CycleConn { return CycleConn{c} }

func (t CycleConn) Write(b []byte) (int, error) {
	n, err := t.c.writeSome(b)
	if err != syscall.EAGAIN {
		return n, err
	}
	t.c.Detach()
	more, err := t.c.Write(b[n:])
	return n + more, err
}

func (t CycleConn) Read(b []byte) (int, error) {
	c := t.c
	if c.overdue.Load() {
		return 0, os.ErrDeadlineExceeded
	}
	if c.drained {
		return 0, ErrAgain
	}
	if c.reads++; c.reads > readsPerCycle {
		c.Detach()
	}
	n, err := c.system(syscall.SYS_READ, b)
	switch {
	case err == syscall.EAGAIN:
		c.drained = true
		return 0, ErrAgain
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	c.drained = n < len(b) && !c.ending.Load()
	return n, nil
}

// system reads or writes without blocking.
func (c *Conn) system(call uintptr, b []byte) (int, error) {
	c.life.RLock()
	defer c.life.RUnlock()
	if c.fd < 0 {
		return 0, net.ErrClosed
	}
	return transfer(call, c.fd, b)
}
