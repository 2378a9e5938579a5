package peer

import (
	"bufio"
	"net"
	"slices"
	"sync"
)

// maxCallsPerConn bounds the calls of one connection that are answered at the same time. A node forwards only a few
// batches at a time, and makes few other calls.
const maxCallsPerConn = 64

// Handler answers one call. The port sends the status and the payload unchanged.
type Handler func(from Identity, method byte, payload []byte) (status byte, answer []byte)

// ServeCalls answers the calls of a connection until the connection ends, and returns when all calls are answered.
// Each call has its own goroutine, except the methods in atOnce. The goroutine that reads the connection answers
// those itself, so their handlers must not block. Such an answer takes less time than the start of a goroutine.
func ServeCalls(conn net.Conn, from Identity, handle Handler, atOnce ...byte) {
	var (
		calls sync.WaitGroup
		slots = make(chan struct{}, maxCallsPerConn)
		r     = bufio.NewReaderSize(conn, groupBufferBytes)
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
