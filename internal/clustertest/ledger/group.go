package ledger

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// LinearizableByGroup judges a history of a cluster with several Raft groups. The promise is one for each group. Keys
// with the same hash tag are in one group, so the history of the keys of each tag must be linearizable together with
// all policy changes. Each group adopts a change between its call and its answer. The answers to the changes come from
// the first group, and must be linearizable without the checks.
//
// The history must have no change that overlaps another, and none after a change with an unknown outcome: groups may
// adopt such changes in another order. See Traffic.OneSetter.
func LinearizableByGroup(ops []Op) error {
	var changes []Op
	byTag := map[string][]Op{}
	for _, op := range ops {
		if op.Verb == Set {
			changes = append(changes, op)
			continue
		}
		tag := tagOf(op)
		byTag[tag] = append(byTag[tag], op)
	}
	errs := []error{Linearizable(changes)}
	for _, tag := range slices.Sorted(maps.Keys(byTag)) {
		if err := Linearizable(append(byTag[tag], adopted(changes)...)); err != nil {
			errs = append(errs, fmt.Errorf("group of {%s}: %w", tag, err))
		}
	}
	return errors.Join(errs...)
}

// adopted returns policy changes as a group sees them that does not answer them. If the outcome is unknown, the group
// may also get the new terms as a repair, which forgets no usage.
func adopted(changes []Op) (seen []Op) {
	for _, op := range changes {
		op.elsewhere = true
		seen = append(seen, op)
		if op.Unknown && op.Reset {
			op.Reset = false
			seen = append(seen, op)
		}
	}
	return seen
}

// tagOf returns the hash tag of the first key of an operation, or of its hold.
func tagOf(op Op) string {
	name := op.ID
	if len(op.Pairs) > 0 {
		name = op.Pairs[0].Key
	}
	if _, rest, ok := strings.Cut(name, "{"); ok {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			return tag
		}
	}
	return name
}
