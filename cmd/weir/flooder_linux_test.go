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
	// floodAddr is the source of floods, and honestAddr of all other clients. Both are on this machine.
	floodAddr  = "127.0.0.2"
	honestAddr = "127.0.0.3"
	// floodDials bounds the connections that a flood opens at the same time, so that the server gets some CPU time.
	floodDials = 8
	// floodDrip is how long a slow connection waits before its next byte.
	floodDrip = 100 * time.Millisecond
)

// opening describes how a connection of a flood begins. It sends some bytes at once and others one at a time,
// repeatedly.
type opening struct{ send, drip string }

// flood holds as many connections of a port as possible, and reopens each connection that is cut.
type flood struct {
	addr  string
	tried atomic.Int64 // attempted connections
	dials chan struct{}
	end   context.CancelFunc
	all   sync.WaitGroup
}

// startFlood opens n connections, divided equally among the ways to begin.
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

// hold opens a connection and keeps it until the server cuts it.
func (f *flood) hold(ctx context.Context, how opening) {
	f.dials <- struct{}{}
	nc, err := dialFrom(ctx, floodAddr, f.addr)
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

// dialFrom connects from the given address of this machine.
func dialFrom(ctx context.Context, from, to string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
	return d.DialContext(ctx, "tcp", to)
}
