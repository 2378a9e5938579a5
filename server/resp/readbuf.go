package resp

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// ErrReadMemory: the read buffers have reached their memory bound.
var ErrReadMemory = errors.New("too many large commands in progress, try again")

// BufferPools provides read buffers to the connections of one server.
type BufferPools struct {
	medium, large sync.Pool    // *[MediumReadBytes]byte, *[largeReadBytes]byte
	Pooled        atomic.Int64 // bytes of pooled buffers in use
	Oversize      atomic.Int64 // bytes of buffers that are not pooled
}

// account returns the counter for a buffer of this size, and its bound.
func (p *BufferPools) account(size int) (held *atomic.Int64, most int64) {
	if size <= largeReadBytes {
		return &p.Pooled, MaxPooledBytes
	}
	return &p.Oversize, MaxOversizeBytes
}

// get returns a buffer of size bytes, or nil at the memory bound. size is a pooled size or exceeds the largest one.
func (p *BufferPools) get(size int) []byte {
	held, most := p.account(size)
	if held.Add(int64(size)) > most {
		held.Add(-int64(size))
		return nil
	}
	switch size {
	case MediumReadBytes:
		if b, ok := p.medium.Get().(*[MediumReadBytes]byte); ok {
			return b[:]
		}
		return make([]byte, MediumReadBytes)
	case largeReadBytes:
		if b, ok := p.large.Get().(*[largeReadBytes]byte); ok {
			return b[:]
		}
		return make([]byte, largeReadBytes)
	}
	return make([]byte, size)
}

// put takes back a buffer of get. It ignores a small buffer.
func (p *BufferPools) put(b []byte) {
	if len(b) <= SmallReadBytes {
		return
	}
	held, _ := p.account(len(b))
	held.Add(-int64(len(b)))
	switch len(b) {
	case MediumReadBytes:
		p.medium.Put((*[MediumReadBytes]byte)(b))
	case largeReadBytes:
		p.large.Put((*[largeReadBytes]byte)(b))
	}
}

// ReadBuffer holds the bytes of one connection that are read and not yet consumed. Its memory follows the bytes that
// have arrived. It begins with its own small array, grows when a read fills it, and shrinks when it is idle.
type ReadBuffer struct {
	Pools *BufferPools
	buf   []byte // small[:] or a buffer of Pools
	from  int    // buf[from:to] is not yet consumed
	to    int
	full  bool // the last read filled the buffer
	small [SmallReadBytes]byte
}

// Unread returns the bytes that are not yet consumed. They are valid until the next Fill or Release.
func (r *ReadBuffer) Unread() []byte { return r.buf[r.from:r.to] }

// Consume drops the first n unread bytes.
func (r *ReadBuffer) Consume(n int) { r.from += n }

// Fill reads once from src and appends to the unread bytes, which may move.
func (r *ReadBuffer) Fill(src io.Reader) (n int, err error) {
	if err := r.grow(); err != nil {
		return 0, err
	}
	n, err = src.Read(r.buf[r.to:])
	r.to += n
	r.full = r.to == len(r.buf)
	return n, err
}

// grow makes space for the next read, and more of it if the last read filled the buffer. A byte is copied a bounded
// number of times: once to the front of the buffer, and then once each time the size doubles.
func (r *ReadBuffer) grow() error {
	unread := r.to - r.from
	size := len(r.buf)
	switch {
	case size == 0:
		size = SmallReadBytes
	case size > largeReadBytes && unread <= MediumReadBytes:
		size = largeReadBytes // the large command is consumed
	case r.full:
		size = nextSize(size, unread)
	}
	if size != len(r.buf) {
		if err := r.move(size); err == nil || unread == len(r.buf) {
			return err
		}
		// No other buffer is available, so the current one must suffice.
	}
	if r.from > 0 {
		copy(r.buf, r.Unread())
		r.from, r.to = 0, unread
	}
	r.full = false
	return nil
}

// nextSize returns the size after a read that filled a buffer of this size. Beyond the pooled sizes only an unfinished
// command that fills the whole buffer makes it grow.
func nextSize(size, unread int) int {
	switch {
	case size < MediumReadBytes:
		return MediumReadBytes
	case size < largeReadBytes:
		return largeReadBytes
	case unread == size:
		return 2 * size
	}
	return size
}

// move copies the unread bytes to a buffer of another size.
func (r *ReadBuffer) move(size int) error {
	buf := r.small[:]
	if size > SmallReadBytes {
		if buf = r.Pools.get(size); buf == nil {
			return ErrReadMemory
		}
	}
	n := copy(buf, r.Unread())
	r.Pools.put(r.buf)
	r.buf, r.from, r.to, r.full = buf, 0, n, false
	return nil
}

// Shrink moves the unread bytes to the small array if they fit, and releases the buffer.
func (r *ReadBuffer) Shrink() {
	if unread := r.to - r.from; len(r.buf) > SmallReadBytes && unread < SmallReadBytes {
		_ = r.move(SmallReadBytes) // cannot fail: the small array is always available
	}
}

// Release releases the buffer permanently.
func (r *ReadBuffer) Release() {
	r.Pools.put(r.buf)
	r.buf, r.from, r.to = nil, 0, 0
}
