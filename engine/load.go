package engine

import "hash/maphash"

// Load puts a stored entry back; an entry that is idle at the stamp is skipped and
// reported as false. An error means key or value is not something Drain wrote.
// Loading does not mark the entry as changed. It may run in many goroutines.
func (t *Table) Load(at Stamp, key, value []byte) (bool, error) {
	if len(key) < 2 || len(key) > 1+2+MaxNameLen+MaxIDLen || len(value) == 0 {
		return false, ErrStored
	}
	if key[0] == policyClass {
		return t.loadPolicy(string(key[1:]), value)
	}
	kind, name := value[0], key[1:]
	if kind >= uint8(numKinds) || storageKinds[namespaceOf(kind)] != key[0] {
		return false, ErrStored
	}
	shardKey := name
	if kind == kindToken {
		var ok bool
		if shardKey, ok = keyOfToken(name); !ok {
			return false, ErrStored
		}
	}
	s := t.shardOf(maphash.Bytes(t.seed, homeOf(shardKey)))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nowNs = max(s.nowNs, at.NowNs)
	return s.load(name, kind, value[1:])
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

func (s *shard) load(name []byte, kind uint8, value []byte) (bool, error) {
	d := decoder{b: value}
	c := cell{hash: s.t.hashKey(name), key: name, ns: namespaceOf(kind)}
	s.open(&c)
	var limit Limit
	if namespaceOf(kind) == limiters && kind != uint8(Counter) && kind != uint8(Scripted) {
		limit = d.limit(Algorithm(kind))
	}
	if kind == kindClaims {
		limit = d.limit(Algorithm(d.byte()))
	}
	if d.bad || c.r != 0 || kind == kindClaims && !policed(limit.Algorithm) {
		return false, ErrStored
	}
	stateLen := stateLens[kind]
	switch kind {
	case kindBlock:
		stateLen += min(len(d.b), MaxReasonLen)
	case kindHold:
		if stateLen = len(d.b); !soundHold(d.b) || len(name) > MaxIDLen {
			return false, ErrStored
		}
	}
	s.create(&c, kind, stateLen)
	if limit.Algorithm != NoAlgorithm {
		s.setLimit(c.e, &limit)
	}
	s.loadState(c.e, &d)
	s.wheel.link(&s.slab, c.r, s.idleAtNs(c.e))
	if d.bad || len(d.b) > 0 {
		s.remove(&c)
		return false, ErrStored
	}
	if s.idle(c.e) {
		s.remove(&c)
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
		log := s.loadLog(d)
		log.write(st)
	case uint8(Strike):
		blockedNs := d.within(0, Never)
		log := s.loadLog(d)
		log.write(st)
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
		untilNs := d.within(0, Never)
		reason := d.bytes(int64(len(d.b)))
		if d.bad = d.bad || len(reason) > MaxReasonLen; !d.bad {
			writeBlock(st, untilNs, reason)
		}
	default:
		copy(st, d.bytes(int64(stateLens[e.kind()])))
	}
}

func (s *shard) loadLog(d *decoder) (log unitLog) {
	total, atNs := d.within(0, MaxLogUnits), int64(0)
	for log.units < total && !d.bad {
		atNs += d.within(0, Never-atNs)
		units := d.within(1, total-log.units)
		if !d.bad {
			log.append(&s.slab, atNs, units)
		}
	}
	return log
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
