package engine

// MaxValueBytes bounds the byte string that a client keeps under a key. Copying it takes
// tens of microseconds under the lock of its shard, and an entry of the log holds two.
const MaxValueBytes = 1 << 20

// The bytes of a value stand in a chain of blocks behind its record, which has their
// number in words[0] and the first block in words[1]. Each block begins with next(4). All
// but the last are as long as slots get.
const (
	textBlockHead = 4
	textBlockRoom = maxRecord - textBlockHead
)

// text is a byte string that is kept: how long it is, and its first block. An empty one
// has no block.
type text struct {
	len  int
	head ref
}

// isText reports whether the state of a scripted entry is that of a byte string.
func isText(state []byte) bool { return scriptShape(state[0]) == shapeText }

func readText(state []byte) text {
	return text{len: int(le.Uint64(state[8:])), head: ref(le.Uint64(state[16:]))}
}

// writeText makes the record in a state refer to a text.
func writeText(state []byte, x text) {
	le.PutUint64(state[8:], uint64(x.len))
	le.PutUint64(state[16:], uint64(x.head))
}

// appendTo appends the bytes.
func (x text) appendTo(b []byte, s *slab) []byte {
	for r, left := x.head, x.len; left > 0; {
		block := s.at(r)
		n := min(left, textBlockRoom)
		b = append(b, block[textBlockHead:textBlockHead+n]...)
		r, left = le.Uint32(block), left-n
	}
	return b
}

// overwrite replaces the bytes by as many others.
func (x text) overwrite(b []byte, s *slab) {
	for r := x.head; len(b) > 0; {
		block, n := s.at(r), min(len(b), textBlockRoom)
		copy(block[textBlockHead:], b[:n])
		r, b = le.Uint32(block), b[n:]
	}
}

// bytes is the room the blocks take.
func (x text) bytes(s *slab) (n int) {
	for r := x.head; r != 0; r = le.Uint32(s.at(r)) {
		n += s.len(r)
	}
	return n
}

// free frees the blocks.
func (x text) free(s *slab) {
	for r := x.head; r != 0; {
		next := le.Uint32(s.at(r))
		s.free(r)
		r = next
	}
}

// newText keeps bytes, if room allows it each of the blocks that they take.
func (s *shard) newText(b []byte, room func(n int) bool) (x text, ok bool) {
	x.len = len(b)
	last := ref(0)
	for len(b) > 0 {
		n := min(len(b), textBlockRoom)
		if !room(textBlockHead + n) {
			x.free(&s.slab)
			return text{}, false
		}
		r := s.slab.alloc(textBlockHead + n)
		block := s.slab.at(r)
		le.PutUint32(block, 0)
		copy(block[textBlockHead:], b[:n])
		if b = b[n:]; last == 0 {
			x.head = r
		} else {
			le.PutUint32(s.slab.at(last), r)
		}
		last = r
	}
	return x, true
}

// appendScripted appends the stored form of a scripted entry's state. That of a text has the
// bytes in place of the reference to them, and that of a log the times.
func (s *shard) appendScripted(b, state []byte) []byte {
	from := len(b)
	b = append(b, state[:scriptRecordLen]...)
	if isText(state) {
		x := readText(state)
		writeText(b[from:], text{len: x.len})
		return x.appendTo(b, &s.slab)
	}
	if isLog(state) {
		log := readLog(state[scriptLogAt:])
		clear(b[from+scriptLogAt : from+scriptLogAt+logLen])
		return s.appendTimes(b, &log)
	}
	return b
}

// loadScripted is the inverse of appendScripted.
func (s *shard) loadScripted(e entry, d *decoder) {
	st := e.state()
	record := d.bytes(scriptRecordLen)
	switch {
	case d.bad:
		return
	case isLog(record):
		log := s.loadTimes(d)
		copy(st, record)
		log.write(st[scriptLogAt:])
		return
	case !isText(record):
		copy(st, record)
		return
	}
	if n := readText(record).len; n < 0 || n > MaxValueBytes || n != len(d.b) {
		d.bad = true
		return
	}
	x, _ := s.newText(d.bytes(int64(len(d.b))), func(int) bool { return true })
	copy(st, record)
	writeText(st, x)
}

// ValueGrows reports whether an operation on strings may take memory: for a new entry, or for
// more bytes than the key has. Of TextAppend it does not know, so that may.
func (t *Table) ValueGrows(at Stamp, op *Op) bool {
	h, s := t.find(op.Key)
	s.mu.Lock()
	defer s.unlock()
	s.look(at)
	c := cell{hash: h, key: op.Key}
	s.open(&c)
	if !c.live || c.e.kind() != uint8(Scripted) {
		return !c.live // of another kind it is refused
	}
	has := 0
	if isText(c.e.state()) {
		has = readText(c.e.state()).len
	}
	switch texts := op.Script.ID.TextsOf(); {
	case op.Script.ID == TextDrop:
		return false
	case op.Script.ID == TextAppend:
		return true
	default:
		return len(op.Script.Values[texts-1]) > has
	}
}
