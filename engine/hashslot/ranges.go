package hashslot

// MaxGroups is the greatest number of groups that the slots are divided among.
const MaxGroups = 1024

// Range is a contiguous range of slots, both ends included.
type Range struct{ First, Last uint16 }

// All is the range of a cluster with one group.
var All = Range{0, Count - 1}

// Has reports whether a slot is in the range.
func (r Range) Has(slot uint16) bool { return r.First <= slot && slot <= r.Last }

// Len returns the number of slots in the range.
func (r Range) Len() int { return int(r.Last) - int(r.First) + 1 }

// OfGroup returns the range of a group when the slots are divided evenly among groups, in order. groups is a power of
// two of at most MaxGroups, and group is from 0 to groups-1.
func OfGroup(group, groups int) Range {
	each := Count / groups
	return Range{uint16(group * each), uint16((group+1)*each - 1)}
}

// Group returns the group of a slot under the same division.
func Group(slot uint16, groups int) int { return int(slot) * groups / Count }

// ValidGroups reports whether the slots can be divided among this number of groups.
func ValidGroups(groups int) bool {
	return groups >= 1 && groups <= MaxGroups && groups&(groups-1) == 0
}
