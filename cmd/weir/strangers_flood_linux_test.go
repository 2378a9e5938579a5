package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// strangerAddr is where floods come from, honestAddr where everybody else does: other
	// sources, of one machine.
	strangerAddr = "127.0.0.2"
	honestAddr   = "127.0.0.3"
	// floodDials bounds the connections of a flood that are being opened at once, so that
	// it leaves the machine some time for the server.
	floodDials = 8
	// floodDrip is how long a slow connection waits before its next byte.
	floodDrip = 100 * time.Millisecond
)

// opening is how a connection of a flood begins: bytes that it sends at once, and others
// one at a time, over and over.
type opening struct{ send, drip string }

// flood holds as many connections of a port as it can get, and opens another for each that
// is cut.
type flood struct {
	addr  string
	tried atomic.Int64 // connections
	dials chan struct{}
	end   context.CancelFunc
	all   sync.WaitGroup
}

// startFlood opens n connections, of each way to begin as many.
func startFlood(ctx context.Context, addr string, n int, ways []opening) *flood {
	f := &flood{addr: addr, dials: make(chan struct{}, floodDials)}
	ctx, f.end = context.WithCancel(ctx)
	for i := range n {
		f.all.Go(func() {
			for ctx.Err() == nil {
				f.hold(ctx, ways[i%len(ways)])
			}
		})
	}
	return f
}

func (f *flood) stop() {
	f.end()
	f.all.Wait()
}

// hold opens a connection and keeps it until it is cut.
func (f *flood) hold(ctx context.Context, how opening) {
	f.dials <- struct{}{}
	nc, err := dialFrom(ctx, strangerAddr, f.addr)
	<-f.dials
	f.tried.Add(1)
	if err != nil {
		return
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { _ = nc.Close() })()
	if _, err := nc.Write([]byte(how.send)); err != nil {
		return
	}
	answer := make([]byte, 512)
	for next := 0; ; {
		if how.drip != "" {
			_ = nc.SetReadDeadline(time.Now().Add(floodDrip))
		}
		_, err := nc.Read(answer)
		var timeout net.Error
		switch {
		case err == nil:
			continue
		case how.drip == "" || !errors.As(err, &timeout) || !timeout.Timeout():
			return
		}
		if _, err := nc.Write([]byte{how.drip[next]}); err != nil {
			return
		}
		next = (next + 1) % len(how.drip)
	}
}

// dialFrom connects from one of this machine's addresses.
func dialFrom(ctx context.Context, from, to string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
	return d.DialContext(ctx, "tcp", to)
}
