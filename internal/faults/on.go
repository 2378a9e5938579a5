//go:build weirfaults

package faults

import "fmt"

// Set is a set of mistakes. The zero value is empty.
type Set struct{ bits uint64 }

// Of returns the set of some mistakes.
func Of(faults ...Fault) (s Set) {
	for _, f := range faults {
		s.bits |= 1 << f
	}
	return s
}

// Has reports whether a mistake is switched on.
func (s Set) Has(f Fault) bool { return s.bits&(1<<f) != 0 }

// byName are the mistakes that a flag of a whole process can switch on.
var byName = map[string]Fault{
	"heartbeat-fast-path": HeartbeatFastPath, "no-sync": NoSync, "wall-clock": WallClock, "no-clamp": NoClamp,
	"collect-early": CollectEarly, "early-reply": EarlyReply, "snapshot-without-stamp": SnapshotWithoutStamp,
	"stale-index": StaleIndex, "fastest-wall": FastestWall, "read-locally": ReadLocally,
	"fresh-by-contact": FreshByContact, "no-slot-check": NoSlotCheck, "stale-map": StaleMap,
	"no-witness": NoWitness, "any-follow": AnyFollow, "follow-later": FollowLater,
}

// Named returns the set of the mistakes with these names.
func Named(names []string) (s Set, err error) {
	for _, name := range names {
		f, ok := byName[name]
		if !ok {
			return Set{}, fmt.Errorf("unknown fault %q", name)
		}
		s.bits |= 1 << f
	}
	return s, nil
}
