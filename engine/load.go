package engine

import "bytes"

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
	d := decoder{b: value}
	var limit Limit
	if namespaceOf(kind) == limiters && kind != uint8(Counter) && kind != uint8(Scripted) {
		limit = d.limit(Algorithm(kind))
	}
	if kind == kindClaims {
		limit = d.limit(Algorithm(d.byte()))
	}
	if d.bad || kind == kindClaims && !held(limit.Algorithm) {
		return false, ErrStored
	}
	stateLen := stateLens[kind]
	switch kind {
	case uint8(TokenBucket), uint8(LeakyBucket):
		stateLen = limit.bucketLen()
	case kindBlock:
		stateLen += min(len(d.b), MaxReasonLen)
	case kindHold:
		if stateLen = len(d.b); !soundHold(d.b) || len(c.key) > MaxIDLen {
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
	if d.bad || len(d.b) > 0 {
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

func (s *shard) loadState(e entry, d *decoder) {
	st := e.state()
	switch e.kind() {
	case uint8(SlidingLog):
		s.loadLog(e, d)
	case uint8(Strike):
		blockedNs := d.within(0, Never)
		s.loadLog(e, d)
		le.PutUint64(st[logLen:], uint64(blockedNs))
	case uint8(Concurrency):
		set := s.loadLeases(d, 0, MaxHolderLen)
		set.write(st)
	case kindClaims:
		set := s.loadLeases(d, markLen+1, markLen+MaxIDLen)
		d.bad = d.bad || set.count == 0
		set.write(st)
	case kindHold:
		copy(st, d.bytes(int64(len(d.b))))
	case kindBlock:
		untilNs := d.varint()
		everywhere := untilNs < 0
		if everywhere {
			untilNs = ^untilNs
		}
		reason := d.bytes(int64(len(d.b)))
		if d.bad = d.bad || len(reason) > MaxReasonLen; !d.bad {
			writeBlock(st, untilNs, everywhere, reason)
			s.noteBlock(e, true)
		}
	case uint8(Scripted):
		s.loadScripted(e, d)
	case uint8(TokenBucket), uint8(LeakyBucket):
		if b := d.bytes(longBucketLen); !d.bad {
			at := readWide(b)
			if d.bad = at.hi>>32 != 0 && !e.has(flagLong); !d.bad {
				e.setBucket(at)
			}
		}
	default:
		copy(st, d.bytes(int64(stateLens[e.kind()])))
	}
}

// loadLog adds what is stored to a log. That may hold units that had left its window by then,
// but it keeps no more than the newest MaxLogUnits, as when it gained them.
func (s *shard) loadLog(e entry, d *decoder) {
	log, atNs := readLog(e.state()), int64(0)
	for left := d.within(0, MaxLogUnits); left > 0 && !d.bad; {
		atNs += d.within(0, Never-atNs)
		units := d.within(1, left)
		if left -= units; !d.bad {
			log.append(&s.slab, atNs, units)
		}
	}
	log.dropOldest(&s.slab, log.units-MaxLogUnits)
	log.write(e.state())
}

func (s *shard) loadLeases(d *decoder, shortest, longest int64) (set leaseSet) {
	for count := d.within(0, MaxHolders); int64(set.count) < count && !d.bad; {
		x := lease{expiresNs: d.within(1, Never), units: d.within(1, MaxUnits)}
		x.id = d.bytes(d.within(shortest, longest))
		if !d.bad {
			set.add(&s.slab, x)
		}
	}
	return set
}
