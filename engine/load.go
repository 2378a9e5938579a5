package engine

import (
	"bytes"

	"github.com/weir-project/weir/engine/internal/codec"
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/script"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// Load puts a stored entry back, in place of one of the same key; an entry that is idle
// at the stamp is skipped and reported as false. An error means key or value is not
// something Drain wrote. Loading does not mark the entry as changed. It may run in many
// goroutines; what concerns one key comes in order.
func (t *Table) Load(at Stamp, key, value []byte) (bool, error) {
	if len(value) == 0 || !soundStorageKey(key) {
		return false, ErrStored
	}
	if key[0] == policyClass {
		return t.loadPolicy(string(key[1:]), value)
	}
	kind, more := value[0]&^storedMore, value[0]&storedMore != 0
	if kind >= uint8(numKinds) || storageKinds[namespaceOf(kind)] != key[0] || more && !hasLog(kind) {
		return false, ErrStored
	}
	s, c, err := t.stored(key)
	if err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	s.nowNs = max(s.nowNs, at.NowNs)
	if !more {
		s.unload(&c)
	}
	return s.load(&c, kind, value[1:])
}

// Unload takes a stored entry out again: a Change without a value. None of that key is
// as good.
func (t *Table) Unload(key []byte) error {
	if !soundStorageKey(key) {
		return ErrStored
	}
	if key[0] == policyClass {
		t.policyMu.Lock()
		defer t.policyMu.Unlock()
		t.policies.Store(t.policies.Load().without(string(key[1:])))
		return nil
	}
	s, c, err := t.stored(key)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.unload(&c)
	return nil
}

func soundStorageKey(key []byte) bool {
	return len(key) >= 2 && len(key) <= 1+2+MaxNameLen+MaxIDLen
}

// stored opens the entry of a storage key and locks its shard, unless there is an error.
func (t *Table) stored(key []byte) (*shard, cell, error) {
	ns := bytes.IndexByte(storageKinds[:], key[0])
	if ns < 0 {
		return nil, cell{}, ErrStored
	}
	c := cell{key: key[1:], ns: namespace(ns)}
	shardKey := c.key
	if c.ns == tokens {
		var ok bool
		if shardKey, ok = keyOfToken(c.key); !ok {
			return nil, c, ErrStored
		}
	}
	s := &t.shards[t.placeOf(shardKey)]
	c.hash = t.hashKey(c.key)
	s.mu.Lock()
	s.open(&c)
	return s, c, nil
}

// unload removes an entry, if there is one, without noting that.
func (s *shard) unload(c *cell) {
	if c.r != 0 {
		c.e.unset(flagStored)
		s.remove(c)
	}
}

// Reserve makes an empty table ready for about this many entries, which makes
// loading them faster.
func (t *Table) Reserve(entries int64) {
	t.eachShard(Stamp{}, func(s *shard) {
		if s.keys() == 0 && s.counts.entries[kindToken] == 0 {
			s.index.reserve(entries / int64(len(t.shards)))
		}
	})
}

// keyOfToken returns the key whose operation a token's name belongs to.
func keyOfToken(name []byte) ([]byte, bool) {
	if len(name) < 2 {
		return nil, false
	}
	n := int(name[0]) | int(name[1])<<8
	if n == 0 || n > len(name)-2 {
		return nil, false
	}
	return name[2 : 2+n], true
}

// load makes the entry of a cell that has none, or adds to the log of the one there.
func (s *shard) load(c *cell, kind uint8, value []byte) (bool, error) {
	d := codec.Decoder{B: value}
	var limit Limit
	if namespaceOf(kind) == limiters && kind != uint8(Counter) && kind != uint8(Scripted) {
		limit = rule.ReadLimit(&d, Algorithm(kind))
	}
	if kind == kindClaims {
		limit = rule.ReadLimit(&d, Algorithm(d.Byte()))
	}
	if d.Bad || kind == kindClaims && !held(limit.Algorithm) {
		return false, ErrStored
	}
	stateLen := stateLens[kind]
	switch kind {
	case uint8(TokenBucket), uint8(LeakyBucket):
		stateLen = bucketLen(&limit)
	case kindBlock:
		stateLen += min(len(d.B), MaxReasonLen)
	case kindHold:
		if stateLen = len(d.B); !soundHold(d.B) || len(c.key) > MaxIDLen {
			return false, ErrStored
		}
	}
	switch {
	case c.r == 0:
		s.create(c, kind, stateLen)
		if limit.Algorithm != NoAlgorithm {
			s.setLimit(c.e, &limit)
		}
	case *s.limits.at(c.e.limit()) != limit:
		return false, ErrStored
	default:
		s.wheel.unlink(&s.slab, c.r)
	}
	s.loadState(c.e, &d)
	s.wheel.link(&s.slab, c.r, s.idleAtNs(c.e))
	if d.Bad || len(d.B) > 0 {
		s.remove(c)
		return false, ErrStored
	}
	if s.idle(c.e) {
		s.remove(c)
		return false, nil
	}
	if s.t.opts.TrackChanges {
		c.e.set(flagStored)
	}
	return true, nil
}

func (s *shard) loadState(e entry, d *codec.Decoder) {
	st := e.state()
	switch e.kind() {
	case uint8(SlidingLog):
		loadLog(s, e, d)
	case uint8(Strike):
		blockedNs := d.Within(0, Never)
		loadLog(s, e, d)
		le.PutUint64(st[unitlog.StateLen:], uint64(blockedNs))
	case uint8(Concurrency):
		var set leases.Set
		set.Load(&s.slab, d, 0, MaxHolderLen)
		set.Write(st)
	case kindClaims:
		var set leases.Set
		set.Load(&s.slab, d, markLen+1, markLen+MaxIDLen)
		d.Bad = d.Bad || set.Count == 0
		set.Write(st)
	case kindHold:
		copy(st, d.Bytes(int64(len(d.B))))
	case kindBlock:
		untilNs := d.Varint()
		everywhere := untilNs < 0
		if everywhere {
			untilNs = ^untilNs
		}
		reason := d.Bytes(int64(len(d.B)))
		if d.Bad = d.Bad || len(reason) > MaxReasonLen; !d.Bad {
			writeBlock(st, untilNs, everywhere, reason)
			s.noteBlock(e, true)
		}
	case uint8(Scripted):
		script.Load(st, d, &s.slab)
	case uint8(TokenBucket), uint8(LeakyBucket):
		if b := d.Bytes(longBucketLen); !d.Bad {
			at := readWide(b)
			if d.Bad = at.Hi>>32 != 0 && !e.has(flagLong); !d.Bad {
				setBucket(e, at)
			}
		}
	default:
		copy(st, d.Bytes(int64(stateLens[e.kind()])))
	}
}

func loadLog(s *shard, e entry, d *codec.Decoder) {
	log := unitlog.Read(e.state())
	log.Load(&s.slab, d)
	log.Write(e.state())
}
