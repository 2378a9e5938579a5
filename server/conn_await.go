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

// Await runs wait, which may block for long. It first writes the replies so far, and pushed messages may be written
// meanwhile. gone receives a value or is closed when the client disconnects or sends no more.
func (c *conn) Await(wait func(gone <-chan struct{})) {
	if c.sess.Mute == commands.MuteNone { // otherwise the replies in Out must not be sent
		c.flush()
	}
	gone, release := c.watch()
	defer release()
	c.writeMu.Unlock()
	defer c.writeMu.Lock()
	wait(gone)
}

// watch detects that the client disconnects while no goroutine reads from the connection. gone receives a value or is
// closed then; it is nil if the connection cannot be watched. release ends the watch.
func (c *conn) watch() (gone <-chan struct{}, release func()) {
	if c.polled != nil {
		return c.polled.AwaitEnd()
	}
	raw := rawOf(c.nc)
	if raw == nil {
		return nil, func() {} // this kind of connection cannot be watched
	}
	w := &endWatch{c: c, raw: raw, gone: make(chan struct{}), ended: make(chan struct{})}
	go w.run()
	return w.gone, w.release
}

// rawOf returns the socket under a connection, including a TLS connection, or nil if it has none.
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

// endWatch waits until the client of a connection without a poller disconnects. Its goroutine runs until release. It
// reads nothing.
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
		if errors.Is(err, os.ErrDeadlineExceeded) { // wake was called; its reason is checked after the wait
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

// release ends the watch and restores the read deadline for the next read cycle.
func (w *endWatch) release() {
	w.released.Store(true)
	w.c.wake()
	<-w.ended
	_ = w.c.nc.SetReadDeadline(w.c.authBy)
	w.c.activity.Store(active) // the watch may have consumed a wake-up by Server.sweep
}
