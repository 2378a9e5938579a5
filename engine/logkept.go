package engine

// A log that is asked for again and again gains a few units between two Drains and has
// many: only those it gained are handed out, unless it lost units otherwise than by time, its
// limit changed or it is renewed.

// storedMore is set in the stored kind of an entry whose value adds to the value before.
const storedMore = 0x80

func hasLog(kind uint8) bool { return kind == uint8(SlidingLog) || kind == uint8(Strike) }

// storedKind is the first byte of an entry's stored value.
func (e entry) storedKind() uint8 {
	if hasLog(e.kind()) && readLog(e.state()).kept > 0 {
		return e.kind() | storedMore
	}
	return e.kind()
}

// keepLog notes that all units of a log have been handed out.
func (s *shard) keepLog(e entry) {
	if hasLog(e.kind()) {
		log := readLog(e.state())
		if log.kept = log.units; log.tail != 0 {
			log.keptEnd = logBlock(s.slab.at(log.tail)).end()
		}
		log.write(e.state())
	}
}

// unkeepLog makes the next Drain hand out a log whole.
func (e entry) unkeepLog() {
	if hasLog(e.kind()) {
		log := readLog(e.state())
		log.forgetKept()
		log.write(e.state())
	}
}
