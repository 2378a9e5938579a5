package events

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"sort"
	"sync"

	"github.com/weir-project/weir/engine/internal/codec"
)

const (
	// DefaultBytes is the bound of a log without another one: about 150,000 events.
	DefaultBytes = 16 << 20
	// MinBytes is the least bound. A log of this size has more than fifty events with the longest texts.
	MinBytes = 64 << 10
	// overhead is what an event takes in memory besides its stored form: a slice header, and rounding.
	overhead = 48
)

// ErrStored reports bytes that Drain did not hand out.
var ErrStored = errors.New("not a stored event")

// Log is a log of events. Its methods are safe for concurrent use.
type Log struct {
	mu    sync.Mutex
	bound int64
	first uint64   // the cursor of items[0]; without items, of the next event
	items [][]byte // the stored forms
	bytes int64    // of the items, with overhead
	atMs  int64    // of the newest event
	wake  chan struct{}

	// The store may have the events with cursors from storedFrom on, and before storedTo. Those from drained on must be
	// handed out.
	storedFrom, storedTo, drained uint64
	changed                       bool              // since the last Drain
	loading                       map[uint64][]byte // events from Load, in any order
}

// Position says which events a log has.
type Position struct {
	First uint64 // the cursor of the oldest event; without events, of the next one
	Last  uint64 // the cursor of the newest event that was ever written, 0 for none
	Bytes int64  // that the events take
}

// Dropped returns how many events the log has dropped.
func (p Position) Dropped() uint64 { return p.First - 1 }

// New returns an empty log that keeps at most a number of bytes; 0 means DefaultBytes.
func New(bound int64) *Log {
	if bound == 0 {
		bound = DefaultBytes
	}
	return &Log{bound: bound, first: 1, storedFrom: 1, storedTo: 1, drained: 1, wake: make(chan struct{})}
}

// Append adds events in their order, and drops the oldest events beyond the bound. It sets the cursors.
func (l *Log) Append(list []Event) {
	if len(list) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loaded()
	for i := range list {
		e := &list[i]
		l.atMs = max(l.atMs, e.AtMs)
		e.AtMs, e.Cursor = l.atMs, l.next()
		l.add(e.append(nil))
	}
	l.changed = true
	close(l.wake)
	l.wake = make(chan struct{})
}

func (l *Log) next() uint64 { return l.first + uint64(len(l.items)) }

// add adds an event and keeps the bound. The newest event stays in any case.
func (l *Log) add(item []byte) {
	l.items = append(l.items, item)
	l.bytes += int64(len(item)) + overhead
	l.shrink()
}

// Bound changes the bound.
func (l *Log) Bound(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loaded()
	first := l.first
	l.bound = bytes
	l.shrink()
	l.changed = l.changed || l.first != first
}

// shrink drops the oldest events beyond the bound.
func (l *Log) shrink() {
	for l.bytes > l.bound && len(l.items) > 1 {
		l.bytes -= int64(len(l.items[0])) + overhead
		l.items[0] = nil
		l.items = l.items[1:]
		l.first++
	}
}

// Position returns which events the log has.
func (l *Log) Position() Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.position()
}

func (l *Log) position() Position {
	l.loaded()
	return Position{First: l.first, Last: l.next() - 1, Bytes: l.bytes}
}

// Read returns up to n events after a cursor, the oldest first, and which events the log has. If events after the
// cursor were dropped, it returns those from the oldest on. wake is closed when an event is written after the call.
func (l *Log) Read(after uint64, n int) (list []Event, at Position, wake <-chan struct{}) {
	items, from, at, wake := l.after(after, n)
	for i, item := range items { // an item never changes
		e, _ := decode(from+uint64(i), item)
		list = append(list, e)
	}
	return list, at, wake
}

// after returns the stored forms that Read decodes, and the cursor of the first one.
func (l *Log) after(after uint64, n int) (items [][]byte, from uint64, at Position, wake <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at = l.position()
	if from = max(min(after, at.Last)+1, l.first); from <= at.Last {
		items = l.items[from-l.first:]
	}
	return slices.Clone(items[:min(n, len(items))]), from, at, l.wake
}

// Before returns the cursor of the newest event before a time in Unix milliseconds, or the last dropped cursor.
func (l *Log) Before(atMs int64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loaded()
	return l.first - 1 + uint64(sort.Search(len(l.items), func(i int) bool {
		e, _ := decode(0, l.items[i])
		return e.AtMs >= atMs
	}))
}

// The storage key of an event is its cursor, in eight bytes. The value under positionKey is first, last and the time of
// the newest event. A log that never had an event has no position.
const positionKey = "at"

// Drain hands out up to n changes since the last Drain, and reports whether more are left. write appends the value of a
// change, or nothing for a removal.
func (l *Log) Drain(n int, add func(key string, write func([]byte) []byte)) (more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loaded()
	nothing := func(b []byte) []byte { return b }
	for ; n > 0 && l.storedFrom < min(l.first, l.storedTo); n-- {
		add(keyOf(l.storedFrom), nothing)
		l.storedFrom++
	}
	if l.drained = max(l.drained, l.first); l.storedFrom == l.storedTo {
		l.storedFrom, l.storedTo = l.first, l.first
	}
	for ; n > 0 && l.drained < l.next(); n-- {
		item := l.items[l.drained-l.first]
		add(keyOf(l.drained), func(b []byte) []byte { return append(b, item...) })
		l.drained++
		l.storedTo = max(l.storedTo, l.drained)
	}
	if n > 0 && l.changed {
		add(positionKey, l.appendPosition)
		l.changed = false
	}
	return l.changed || l.drained < l.next() || l.storedFrom < min(l.first, l.storedTo)
}

func keyOf(cursor uint64) string { return string(binary.BigEndian.AppendUint64(nil, cursor)) }

func (l *Log) appendPosition(b []byte) []byte {
	for _, n := range [...]int64{int64(l.first), int64(l.next() - 1), l.atMs} {
		b = binary.AppendVarint(b, n)
	}
	return b
}

// Renew makes the next Drain hand out all events. If cleared, the store has none of them.
func (l *Log) Renew(cleared bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loaded(); l.next() == 1 {
		return
	}
	l.changed, l.drained = true, l.first
	if cleared {
		l.storedFrom, l.storedTo = l.first, l.first
	}
}

// Load adds a stored change: an event or the position. The events may come in any order.
func (l *Log) Load(key string, value []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if key == positionKey {
		return l.loadPosition(value)
	}
	if len(key) != 8 {
		return ErrStored
	}
	cursor := binary.BigEndian.Uint64([]byte(key))
	if _, ok := decode(cursor, value); !ok {
		return ErrStored
	}
	if l.loading == nil {
		l.loading = map[uint64][]byte{}
	}
	l.loading[cursor] = slices.Clone(value)
	return nil
}

// loadPosition loads a position. Events that are already loaded stay.
func (l *Log) loadPosition(value []byte) error {
	d := codec.Decoder{B: value}
	first, last, atMs := d.Within(1, 1<<62), d.Within(0, 1<<62), d.Varint()
	if d.Bad || len(d.B) > 0 || last < first-1 {
		return ErrStored
	}
	if l.loading == nil {
		l.loading = map[uint64][]byte{}
	}
	l.loading[0] = nil // marks that the position below counts
	l.first, l.atMs = uint64(first), atMs
	l.storedTo = uint64(last) + 1
	return nil
}

// Unload removes an event that was loaded.
func (l *Log) Unload(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(key) == 8 {
		delete(l.loading, binary.BigEndian.Uint64([]byte(key)))
	}
}

// loaded puts the events from Load in their order. Only events that follow each other up to the newest one stay: a
// crash may have lost the removal of older ones.
func (l *Log) loaded() {
	if l.loading == nil {
		return
	}
	loading, first := l.loading, l.first
	_, positioned := loading[0]
	delete(loading, 0)
	l.loading = nil
	cursors := slices.Sorted(maps.Keys(loading))
	next := l.storedTo
	if n := len(cursors); n > 0 && (!positioned || cursors[n-1] >= next) {
		next = cursors[n-1] + 1
	}
	from := next
	for i := len(cursors) - 1; i >= 0 && cursors[i] == from-1 && (!positioned || cursors[i] >= first); i-- {
		from--
	}
	l.items, l.bytes, l.first = nil, 0, from
	for c := from; c < next; c++ {
		e, _ := decode(c, loading[c])
		l.atMs = max(l.atMs, e.AtMs)
		l.add(loading[c])
	}
	l.storedFrom, l.storedTo, l.drained = from, next, next
	if len(cursors) > 0 {
		l.storedFrom = min(cursors[0], from)
	}
}

// Each calls visit with the stored form of the position and of each event, for a hash. A log that never had an event
// has none.
func (l *Log) Each(visit func(key string, value []byte)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loaded(); l.next() == 1 {
		return
	}
	visit(positionKey, l.appendPosition(nil))
	for i, item := range l.items {
		visit(keyOf(l.first+uint64(i)), item)
	}
}
