package server

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// errReadMemory: the server holds as many oversize read buffers as it may.
var errReadMemory = errors.New("too many large commands under way, try again")

// bufferPools lends read buffers to the connections of one server.
type bufferPools struct {
	medium, large sync.Pool    // *[mediumReadBytes]byte, *[largeReadBytes]byte
	oversize      atomic.Int64 // bytes in buffers that are not pooled
}

// get returns a pooled buffer of at least size bytes, or a new one above the
// largest pooled size, or nil when the server holds too many of those.
func (p *bufferPools) get(size int) []byte {
	switch {
	case size <= mediumReadBytes:
		if b, ok := p.medium.Get().(*[mediumReadBytes]byte); ok {
			return b[:]
		}
		return make([]byte, mediumReadBytes)
	case size <= largeReadBytes:
		if b, ok := p.large.Get().(*[largeReadBytes]byte); ok {
			return b[:]
		}
		return make([]byte, largeReadBytes)
	}
	if p.oversize.Add(int64(size)) > maxOversizeBytes {
		p.oversize.Add(-int64(size))
		return nil
	}
	return make([]byte, size)
}

// put takes back a buffer that get returned.
func (p *bufferPools) put(b []byte) {
	switch len(b) {
	case mediumReadBytes:
		p.medium.Put((*[mediumReadBytes]byte)(b))
	case largeReadBytes:
		p.large.Put((*[largeReadBytes]byte)(b))
	default:
		if len(b) > largeReadBytes {
			p.oversize.Add(-int64(len(b)))
		}
	}
}

// readBuffer holds the bytes of one connection that are read and not yet
// consumed. Its memory follows what has really arrived: it begins with a small
// array of its own, moves up one size when a read fills it, and comes back down
// when it is empty.
type readBuffer struct {
	pools *bufferPools
	buf   []byte // small[:] or on loan from pools
	from  int    // buf[from:to] is not consumed
	to    int
	full  bool // the last read took all the room there was
	small [smallReadBytes]byte
}

// unread returns the bytes not consumed. They are valid until the next fill or
// release.
func (r *readBuffer) unread() []byte { return r.buf[r.from:r.to] }

// consume drops the first n unread bytes.
func (r *readBuffer) consume(n int) { r.from += n }

// fill reads once from src behind what is unread, which may move.
func (r *readBuffer) fill(src io.Reader) (n int, err error) {
	if err := r.makeRoom(); err != nil {
		return 0, err
	}
	n, err = src.Read(r.buf[r.to:])
	r.to += n
	r.full = r.to == len(r.buf)
	return n, err
}

// makeRoom gives the next read room, and more of it when the last one had too
// little. A byte is copied a bounded number of times: once to the front of the
// buffer, where its command then stays, and then only as sizes double.
func (r *readBuffer) makeRoom() error {
	unread := r.to - r.from
	size := len(r.buf)
	switch {
	case size == 0:
		size = smallReadBytes
	case size > largeReadBytes && unread <= mediumReadBytes:
		size = largeReadBytes // the large command is behind us
	case r.full:
		size = nextSize(size, unread)
	}
	if size != len(r.buf) {
		return r.move(size)
	}
	if r.from > 0 {
		copy(r.buf, r.unread())
		r.from, r.to = 0, unread
	}
	r.full = false
	return nil
}

// nextSize is the size after a read that filled a buffer of this size. Beyond
// the pooled sizes only an unfinished command that fills it all is a reason to
// grow.
func nextSize(size, unread int) int {
	switch {
	case size < mediumReadBytes:
		return mediumReadBytes
	case size < largeReadBytes:
		return largeReadBytes
	case unread == size:
		return 2 * size
	}
	return size
}

// move puts the unread bytes into a buffer of another size.
func (r *readBuffer) move(size int) error {
	buf := r.small[:]
	if size > smallReadBytes {
		if buf = r.pools.get(size); buf == nil {
			return errReadMemory
		}
	}
	n := copy(buf, r.unread())
	r.pools.put(r.buf)
	r.buf, r.from, r.to, r.full = buf, 0, n, false
	return nil
}

// shrink gives back as much as the unread bytes allow: to the small array when
// they fit it.
func (r *readBuffer) shrink() {
	if unread := r.to - r.from; len(r.buf) > smallReadBytes && unread < smallReadBytes {
		_ = r.move(smallReadBytes) // the small array is always there
	}
}

// release gives the buffer back for good.
func (r *readBuffer) release() {
	r.pools.put(r.buf)
	r.buf, r.from, r.to = nil, 0, 0
}
