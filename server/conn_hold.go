package server

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weir-project/weir/server/commands"
)

// Hold lets wait take its time: what has been answered so far goes out before, and
// pushed messages meanwhile. gone has a word, or is closed, once the client has gone
// or sends no more.
func (c *conn) Hold(wait func(gone <-chan struct{})) {
	if c.sess.Mute == commands.MuteNone { // else what is in out is not to be sent
		c.flush()
	}
	gone, release := c.watch()
	defer release()
	c.writeMu.Unlock()
	defer c.writeMu.Lock()
	wait(gone)
}

// watch notices the end of the connection while nobody reads from it.
func (c *conn) watch() (gone <-chan struct{}, release func()) {
	if c.polled != nil {
		return c.polled.AwaitEnd()
	}
	raw := rawOf(c.nc)
	if raw == nil {
		return nil, func() {} // of no kind that tells
	}
	w := &endWatch{c: c, raw: raw, gone: make(chan struct{}), ended: make(chan struct{})}
	go w.run()
	return w.gone, w.release
}

// rawOf is the socket under a connection, also under one that is encrypted; nil: there
// is none.
func rawOf(nc net.Conn) syscall.RawConn {
	if over, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = over.NetConn()
	}
	socket, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// endWatch waits for the end of a connection that has no poller, on a goroutine that
// lives until release. It reads nothing.
type endWatch struct {
	c           *conn
	raw         syscall.RawConn
	released    atomic.Bool
	gone, ended chan struct{}
}

func (w *endWatch) run() {
	defer close(w.ended)
	for {
		err := w.raw.Read(func(fd uintptr) (done bool) { return w.released.Load() || peerEnded(fd) })
		if errors.Is(err, os.ErrDeadlineExceeded) { // a nudge, to be noticed after the wait
			_ = w.c.nc.SetReadDeadline(time.Time{})
			if !w.released.Load() {
				continue
			}
		}
		if !w.released.Load() {
			close(w.gone)
		}
		return
	}
}

// release ends the watch and leaves the connection as a turn expects it.
func (w *endWatch) release() {
	w.released.Store(true)
	w.c.nudge()
	<-w.ended
	_ = w.c.nc.SetReadDeadline(w.c.authBy)
	w.c.stir.Store(active) // a sweeper's nudge may have been lost
}
