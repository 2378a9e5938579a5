package evloop

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// Who works for a connection.
const (
	resting int32 = iota // nobody; the next event finds somebody
	running              // a turn is under way
	again                // so it is, and something happened since it began
)

// readsATurn is how often a turn reads before it goes on beside the poller: a client
// that sends without a pause keeps nobody waiting.
const readsATurn = 4

// Conn is a connection of a Group. It is a net.Conn; its Read and Write block.
type Conn struct {
	group         *Group
	local, remote net.Addr
	state         atomic.Int32

	// turn and what follows belong to whoever runs the turn.
	turn   func() (more bool)
	poller *poller // whose goroutine runs the turn, or nil
	// drained: the last read took all there was, so that another would find nothing
	// until the next event.
	drained bool
	reads   int // since it was claimed

	ending             atomic.Bool // the peer sends no more: read on to the end
	overdue            atomic.Bool // the read deadline has passed
	writeBy            atomic.Int64
	alarm              alarm // of the read deadline
	readable, writable waiter
	ended              waiter // for who waits without reading

	life   sync.RWMutex // held, for reading, while fd is in use
	fd     int          // -1: closed
	serial int32        // tells it from others that had its fd; the group's
}

// Start lets turn be called whenever there may be something to read, on one
// goroutine at a time. It is to read from Turn until that says ErrAgain, and
// then return true; false when it has closed the connection.
func (c *Conn) Start(turn func() (more bool)) error {
	c.turn = turn
	if err := c.watch(); err != nil {
		return err
	}
	if !c.rest() { // something happened already
		go c.turns(nil)
	}
	return nil
}

// watch lets the pollers know of the connection.
func (c *Conn) watch() error {
	c.life.RLock()
	defer c.life.RUnlock()
	if c.fd < 0 {
		return net.ErrClosed
	}
	c.group.put(c.fd, c)
	return c.group.watch(c.fd, c.serial, interest)
}

// note remembers what an event said, and wakes who waits for it.
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

// claim makes the caller the one to run a turn, or leaves a word for who does.
func (c *Conn) claim() bool {
	for {
		switch c.state.Load() {
		case resting:
			if c.state.CompareAndSwap(resting, running) {
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

// turns runs the turn on the goroutine of p, or on one of its own where p is nil,
// and runs it again when something happened meanwhile. It reports whether p, if
// any, still has its goroutine. The caller has claimed the connection.
func (c *Conn) turns(p *poller) (kept bool) {
	c.reads = 0 // of all turns in a row: others wait behind each of them
	for {
		c.poller, c.drained = p, false
		more := c.turn()
		p = c.poller
		if !more || c.rest() {
			return p != nil
		}
	}
}

// rest lets go of the connection, unless something happened meanwhile.
func (c *Conn) rest() bool {
	c.poller = nil
	return c.state.CompareAndSwap(running, resting) || !c.state.CompareAndSwap(again, running)
}

// Detach is for a turn that may block: it lets another goroutine poll.
func (c *Conn) Detach() {
	if p := c.poller; p != nil {
		c.poller = nil
		go p.run()
	}
}

// kick has a turn run soon, on a goroutine of its own. Any goroutine may call it.
func (c *Conn) kick() {
	c.readable.wake()
	if c.claim() {
		go c.turns(nil)
	}
}

// Turn is a connection as its turn sees it: Read takes what is there, ErrAgain means
// that nothing is, and Write detaches when it has to wait.
type Turn struct{ c *Conn }

// Turn is for the goroutine that runs a turn.
func (c *Conn) Turn() Turn { return Turn{c} }

func (t Turn) Write(b []byte) (int, error) {
	n, err := t.c.writeSome(b)
	if err != syscall.EAGAIN {
		return n, err
	}
	t.c.Detach()
	more, err := t.c.Write(b[n:])
	return n + more, err
}

func (t Turn) Read(b []byte) (int, error) {
	c := t.c
	if c.overdue.Load() {
		return 0, os.ErrDeadlineExceeded
	}
	if c.drained {
		return 0, ErrAgain
	}
	if c.reads++; c.reads > readsATurn {
		c.Detach()
	}
	n, err := c.system(read, b)
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

// system reads or writes without waiting.
func (c *Conn) system(call func(int, []byte) (int, error), b []byte) (int, error) {
	c.life.RLock()
	defer c.life.RUnlock()
	if c.fd < 0 {
		return 0, net.ErrClosed
	}
	return call(c.fd, b)
}
