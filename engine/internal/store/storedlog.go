package store

import (
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// A log that is asked for again and again gains a few units between two Drains and has
// many: only those it gained are handed out, unless it lost units otherwise than by time, its
// limit changed or it is renewed.

// StoredMore is set in the stored kind of an entry whose value adds to the value before.
const StoredMore = 0x80

func HasLog(kind uint8) bool { return kind == uint8(rule.SlidingLog) || kind == uint8(rule.Strike) }

// storedKind is the first byte of an entry's stored value.
func storedKind(e Entry) uint8 {
	if HasLog(e.Kind()) && logStoresMore(e) {
		return e.Kind() | StoredMore
	}
	return e.Kind()
}

// keepLog notes that all units of a log have been handed out.
func (s *Store) keepLog(e Entry) {
	if HasLog(e.Kind()) {
		log := unitlog.Read(e.State())
		log.KeepAll(&s.Slab)
		log.Write(e.State())
	}
}

// UnkeepLog makes the next Drain hand out a log whole.
func UnkeepLog(e Entry) {
	if HasLog(e.Kind()) {
		log := unitlog.Read(e.State())
		log.ForgetKept()
		log.Write(e.State())
	}
}

func logStoresMore(e Entry) bool {
	log := unitlog.Read(e.State())
	return log.StoresMore()
}
