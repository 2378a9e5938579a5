package engine

import "github.com/weir-project/weir/engine/internal/unitlog"

// A log that is asked for again and again gains a few units between two Drains and has
// many: only those it gained are handed out, unless it lost units otherwise than by time, its
// limit changed or it is renewed.

// storedMore is set in the stored kind of an entry whose value adds to the value before.
const storedMore = 0x80

func hasLog(kind uint8) bool { return kind == uint8(SlidingLog) || kind == uint8(Strike) }

// storedKind is the first byte of an entry's stored value.
func storedKind(e entry) uint8 {
	if hasLog(e.kind()) && logStoresMore(e) {
		return e.kind() | storedMore
	}
	return e.kind()
}

// keepLog notes that all units of a log have been handed out.
func (s *shard) keepLog(e entry) {
	if hasLog(e.kind()) {
		log := unitlog.Read(e.state())
		log.KeepAll(&s.slab)
		log.Write(e.state())
	}
}

// unkeepLog makes the next Drain hand out a log whole.
func unkeepLog(e entry) {
	if hasLog(e.kind()) {
		log := unitlog.Read(e.state())
		log.ForgetKept()
		log.Write(e.state())
	}
}

func logStoresMore(e entry) bool {
	log := unitlog.Read(e.state())
	return log.StoresMore()
}
