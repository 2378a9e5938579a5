package peer

import (
	"bufio"
	"net"
	"slices"
	"sync"
)

// maxCallsPerConn bounds the calls of one connection that are being answered: a
// node forwards at most as many batches at a time, and asks for little else.
const maxCallsPerConn = 64

// Handler answers one call. The status and the payload go back as they are.
type Handler func(from Identity, method byte, payload []byte) (status byte, answer []byte)

// ServeCalls answers the calls of a connection until it ends, and returns when all are
// answered. Each has a goroutine of its own, except those of the methods that atOnce
// names: who reads the connection answers them itself, before it reads on, so they must
// not wait for anything. To start a goroutine takes longer than such an answer.
func ServeCalls(conn net.Conn, from Identity, handle Handler, atOnce ...byte) {
	var (
		calls sync.WaitGroup
		slots = make(chan struct{}, maxCallsPerConn)
		r     = bufio.NewReaderSize(conn, readBufferBytes)
		a     = answerer{conn: conn, from: from, handle: handle}
	)
	defer calls.Wait()
	defer conn.Close()
	for {
		f, err := readFrame(r)
		if err != nil {
			return
		}
		if slices.Contains(atOnce, f.kind) {
			a.answer(f)
			continue
		}
		slots <- struct{}{}
		calls.Go(func() {
			defer func() { <-slots }()
			a.answer(f)
		})
	}
}

// answerer answers the calls of one connection.
type answerer struct {
	conn    net.Conn
	from    Identity
	handle  Handler
	writing sync.Mutex
}

func (a *answerer) answer(f frame) {
	status, answer := a.handle(a.from, f.kind, f.payload)
	b := appendFrame(make([]byte, 0, 4+frameHead+len(answer)), frame{number: f.number, kind: status, payload: answer})
	a.writing.Lock()
	defer a.writing.Unlock()
	if _, err := a.conn.Write(b); err != nil {
		a.conn.Close()
	}
}
