package peer

import (
	"bufio"
	"net"
	"sync"
)

// maxCallsPerConn bounds the calls of one connection that are being answered: a
// node forwards at most as many batches at a time, and asks for little else.
const maxCallsPerConn = 64

// Handler answers one call. The status and the payload go back as they are.
type Handler func(from Identity, method byte, payload []byte) (status byte, answer []byte)

// ServeCalls answers the calls of a connection, each in a goroutine of its own,
// until it ends, and returns when all are answered.
func ServeCalls(conn net.Conn, from Identity, handle Handler) {
	var (
		calls sync.WaitGroup
		mu    sync.Mutex // guards writes
		slots = make(chan struct{}, maxCallsPerConn)
		r     = bufio.NewReaderSize(conn, readBufferBytes)
	)
	defer calls.Wait()
	defer conn.Close()
	for {
		f, err := readFrame(r)
		if err != nil {
			return
		}
		slots <- struct{}{}
		calls.Go(func() {
			defer func() { <-slots }()
			status, answer := handle(from, f.kind, f.payload)
			b := appendFrame(make([]byte, 0, 4+frameHead+len(answer)), frame{number: f.number, kind: status, payload: answer})
			mu.Lock()
			defer mu.Unlock()
			if _, err := conn.Write(b); err != nil {
				conn.Close()
			}
		})
	}
}
