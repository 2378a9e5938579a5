package main

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/server"
)

// weir is a server in this process. Only pass moves its clock.
type weir struct {
	rdb   *redis.Client
	node  *persistence.Node
	srv   *server.Server
	ended chan error
}

func startWeir() (*weir, error) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	node, err := persistence.Open(persistence.Options{TestClock: true, Logger: quiet})
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, node.Close())
	}
	srv, err := server.New(server.Config{Addr: ln.Addr().String(), Logger: quiet}, node)
	if err != nil {
		return nil, errors.Join(err, ln.Close(), node.Close())
	}
	w := &weir{node: node, srv: srv, ended: make(chan error, 1)}
	go func() { w.ended <- srv.Serve(ln) }()
	w.rdb = redis.NewClient(&redis.Options{Addr: ln.Addr().String()})
	return w, nil
}

func (w *weir) stop() {
	_ = w.rdb.Close()
	_ = w.srv.Close()
	<-w.ended
	_ = w.node.Close()
}

// pass moves the clock.
func (w *weir) pass(d time.Duration) { w.node.Advance(d) }
