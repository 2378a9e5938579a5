package resp

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// ErrReadMemory: the server holds as much in read buffers as it may.
var ErrReadMemory = errors.New("too many large commands under way, try again")

// BufferPools lends read buffers to the connections of one server.
type BufferPools struct {
	medium, large sync.Pool    // *[MediumReadBytes]byte, *[largeReadBytes]byte
	Pooled        atomic.Int64 // bytes on loan from the pools
	Oversize      atomic.Int64 // bytes in buffers that are not pooled
}

// account is what counts the bytes of a buffer, and how many there may be.
func (p *BufferPools) account(size int) (held *atomic.Int64, most int64) {
	if size <= largeReadBytes {
		return &p.Pooled, MaxPooledBytes
	}
	return &p.Oversize, MaxOversizeBytes
}

// get returns a buffer of size bytes, which is one of the pooled sizes or above the
// largest, or nil when the server holds too much.
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

// put takes back a buffer that get returned, or a small one.
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

// ReadBuffer holds the bytes of one connection that are read and not yet
// consumed. Its memory follows what has really arrived: it begins with a small
// array of its own, moves up one size when a read fills it, and comes back down
// when it is empty.
type ReadBuffer struct {
	Pools *BufferPools
	buf   []byte // small[:] or on loan from pools
	from  int    // buf[from:to] is not consumed
	to    int
	full  bool // the last read took all the room there was
	small [SmallReadBytes]byte
}

// Unread returns the bytes not consumed. They are valid until the next fill or
// release.
func (r *ReadBuffer) Unread() []byte { return r.buf[r.from:r.to] }

// Consume drops the first n unread bytes.
func (r *ReadBuffer) Consume(n int) { r.from += n }

// Fill reads once from src behind what is unread, which may move.
func (r *ReadBuffer) Fill(src io.Reader) (n int, err error) {
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
func (r *ReadBuffer) makeRoom() error {
	unread := r.to - r.from
	size := len(r.buf)
	switch {
	case size == 0:
		size = SmallReadBytes
	case size > largeReadBytes && unread <= MediumReadBytes:
		size = largeReadBytes // the large command is behind us
	case r.full:
		size = nextSize(size, unread)
	}
	if size != len(r.buf) {
		if err := r.move(size); err == nil || unread == len(r.buf) {
			return err
		}
		// There is no other buffer to be had: what there is must do.
	}
	if r.from > 0 {
		copy(r.buf, r.Unread())
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
	case size < MediumReadBytes:
		return MediumReadBytes
	case size < largeReadBytes:
		return largeReadBytes
	case unread == size:
		return 2 * size
	}
	return size
}

// move puts the unread bytes into a buffer of another size.
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

// Shrink gives back as much as the unread bytes allow: to the small array when
// they fit it.
func (r *ReadBuffer) Shrink() {
	if unread := r.to - r.from; len(r.buf) > SmallReadBytes && unread < SmallReadBytes {
		_ = r.move(SmallReadBytes) // the small array is always there
	}
}

// Release gives the buffer back for good.
func (r *ReadBuffer) Release() {
	r.Pools.put(r.buf)
	r.buf, r.from, r.to = nil, 0, 0
}
