package chaos

import (
	"net"
	"sync"
	"time"
)

// chunkBytes is the size of one read, and chunksInFlight chunks may travel on a slow wire. Together they are a window
// of 2 MiB, more than a log entry.
const (
	chunkBytes     = 32 << 10
	chunksInFlight = 64
)

// link is one connection through a proxy.
type link struct {
	from, to net.Conn
	done     chan struct{} // closed when either end shall close
	once     sync.Once
}

// end ends the connection, with a TCP reset if abrupt.
func (l *link) end(abrupt bool) {
	l.once.Do(func() {
		close(l.done)
		for _, c := range []net.Conn{l.from, l.to} {
			if tcp, ok := c.(*net.TCPConn); ok && abrupt {
				_ = tcp.SetLinger(0)
			}
			c.Close()
		}
	})
}

// chunk is a number of bytes in transit.
type chunk struct {
	bytes []byte
	due   time.Time
}

// transfer moves bytes over a wire until either end closes or done is closed. The end of a connection travels like its
// bytes. A node behind a cut wire therefore does not learn that its peer has ended.
func transfer(w *Wire, from, to net.Conn, done <-chan struct{}) {
	travelling, stop := make(chan chunk, chunksInFlight), make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(travelling)
		read(w, from, travelling, stop)
	})
	defer reader.Wait()
	defer func() { close(stop); from.Close() }() // the reader may wait for room in travelling, or for bytes
	for c := range travelling {
		if !sleepUntil(c.due, done) || !w.await(done) {
			return
		}
		if _, err := to.Write(c.bytes); err != nil {
			return
		}
	}
	w.await(done)
}

func read(w *Wire, from net.Conn, into chan<- chunk, stop <-chan struct{}) {
	buf := make([]byte, chunkBytes)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		c := chunk{bytes: append([]byte(nil), buf[:n]...), due: time.Now().Add(w.travelTime())}
		select {
		case into <- c:
		case <-stop:
			return
		}
	}
}

func sleepUntil(due time.Time, done <-chan struct{}) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-done:
		return false
	}
}
