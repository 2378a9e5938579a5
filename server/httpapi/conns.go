package httpapi

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/internal/connlimit"
	"github.com/weir-project/weir/server/service"
)

// webConns bounds the HTTP connections. A connection is not evicted while a handler runs. Handlers read a body only
// after authentication, so no other client can hold a connection by a slow body.
type webConns struct {
	table *connlimit.Table

	mu    sync.Mutex
	slots map[net.Conn]*connlimit.Slot
}

func newWebConns(most int, evicted *atomic.Int64) *webConns {
	return &webConns{table: connlimit.New(most, 0, evicted), slots: make(map[net.Conn]*connlimit.Slot)}
}

type webSlotKey struct{}

// admit gives a new connection a slot and a login memory, or closes it. It is http.Server.ConnContext.
func (w *webConns) admit(ctx context.Context, nc net.Conn) context.Context {
	socket := nc
	if secure, ok := nc.(*tls.Conn); ok {
		socket = secure.NetConn() // its Close does not wait for a peer that does not read
	}
	slot, err := w.table.Admit(connlimit.SourceOf(nc.RemoteAddr().String()), func() { _ = socket.Close() })
	if err != nil {
		_ = socket.Close()
		return ctx
	}
	w.mu.Lock()
	w.slots[nc] = slot
	w.mu.Unlock()
	return service.WithLoginMemory(context.WithValue(ctx, webSlotKey{}, slot))
}

// changed releases the slot of a closed connection. It is http.Server.ConnState.
func (w *webConns) changed(nc net.Conn, state http.ConnState) {
	if state != http.StateClosed {
		return
	}
	w.mu.Lock()
	slot := w.slots[nc]
	delete(w.slots, nc)
	w.mu.Unlock()
	if slot != nil { // nil: the connection was not admitted
		slot.Release()
	}
}

// server returns a server of these connections.
func (w *webConns) server(handle http.Handler, headerBytes int, log *slog.Logger) *http.Server {
	return &http.Server{
		ConnContext:       w.admit,
		ConnState:         w.changed,
		Handler:           w.serve(handle),
		ReadHeaderTimeout: httpHeaderTimeout,
		ReadTimeout:       httpReadTimeout,
		WriteTimeout:      httpWriteTimeout,
		IdleTimeout:       httpIdleTimeout,
		MaxHeaderBytes:    headerBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// serve exempts a connection from eviction while handle answers a request.
func (w *webConns) serve(handle http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		slot, ok := r.Context().Value(webSlotKey{}).(*connlimit.Slot)
		if !ok {
			handle.ServeHTTP(out, r)
			return
		}
		slot.Begin()
		defer slot.End()
		handle.ServeHTTP(out, r)
	})
}
