package server

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-project/weir/engine"
)

// "Did you mean" in errors about names. What it costs is bounded, for a client may send
// wrong names as fast as it can: names are short, at most maxCandidates are looked at, and
// distances are computed only of what is left between a common beginning and end.

const (
	// maxNearBytes is the longest name that is compared: longer than every command, and
	// than the names that people give to policies.
	maxNearBytes = 32
	// maxDistance is how many letters may be added, left out, changed or swapped.
	maxDistance = 2
	// maxMiddle is what may lie between the first and the last difference.
	maxMiddle = 8
	// maxCandidates bounds how many names one error is compared with: all commands, and
	// the policies of most weirs.
	maxCandidates = 256
	// maxNearest is how many names an error shows.
	maxNearest = 3
)

// nearest collects the names nearest to one that is none.
type nearest struct {
	name  string
	seen  int
	found []near
}

type near struct {
	name     string
	distance int
}

// nearestTo begins a search. Names in any case are near; a name that is too long has none.
func nearestTo(name []byte) nearest {
	if len(name) > maxNearBytes {
		return nearest{seen: maxCandidates}
	}
	return nearest{name: upper(name)}
}

// consider compares with one more name and says whether more may be considered.
func (n *nearest) consider(name string) bool {
	if n.seen++; n.seen > maxCandidates {
		return false
	}
	if d, ok := distance(n.name, strings.ToUpper(name)); ok {
		n.found = append(n.found, near{name, d})
	}
	return true
}

// distance is how many letters tell two names apart, swapped ones counting once. Not ok:
// they are no likely misspellings of each other. A name without its prefix is near.
func distance(a, b string) (d int, ok bool) {
	if a == "" || b == "" || len(b) > maxNearBytes {
		return 0, false
	}
	if strings.HasSuffix(b, "."+a) {
		return 1, true
	}
	most := min(maxDistance, (min(len(a), len(b))+1)/3)
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if max(len(a), len(b))-min(len(a), len(b)) > most || max(len(a), len(b)) > maxMiddle {
		return 0, false
	}
	d = edits(a, b)
	return d, d <= most
}

// edits is the optimal string alignment distance of strings of at most maxMiddle bytes.
func edits(a, b string) int {
	var d [maxMiddle + 1][maxMiddle + 1]int
	for i := range len(a) + 1 {
		d[i][0] = i
	}
	for j := range len(b) + 1 {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+int(oneIf(a[i-1] != b[j-1])))
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}

// text asks " (did you mean A or B?)", or is empty.
func (n *nearest) text() string {
	if len(n.found) == 0 {
		return ""
	}
	slices.SortFunc(n.found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, f := range n.found[:min(len(n.found), maxNearest)] {
		names = append(names, f.name)
	}
	return " (did you mean " + strings.Join(names, " or ") + "?)"
}

// nearCommands adds to the error about an unknown command or subcommand the nearest that
// the user may send. The session has a user: who has not logged in pays for no search.
func (s *session) nearCommands(args [][]byte, err error) error {
	all, name := s.srv.state.table.all, args[0]
	if cmd := s.srv.state.table.find(name); cmd != nil {
		if cmd.subs == nil || len(args) < 2 || cmd.sub(args[1]) != nil {
			return err // known, and wrong in another way
		}
		all, name = cmd.subs, args[1]
	}
	search := nearestTo(name)
	for _, cmd := range all {
		if s.limits == nil || s.limits.mayCall(cmd) {
			if !search.consider(cmd.name) {
				break
			}
		}
	}
	return replyError(errorText(err) + search.text())
}

// nearPolicies adds to the error about an unknown policy the nearest names, for a user who
// may list them.
func (s *session) nearPolicies(err error, name []byte) error {
	if s.limits != nil && !s.limits.mayCall(s.srv.state.table.named([]byte("RL.POLICY|LIST"))) {
		return err
	}
	search := nearestTo(name)
	s.srv.lim.Policies().Names(search.consider)
	return replyError(errorText(err) + search.text())
}

// statusError is statusError for a client that may be told of names.
func (s *session) statusError(op *engine.Op, d *engine.Decision) error {
	err := statusError(op, d)
	if d.Status == engine.UnknownPolicy {
		err = s.nearPolicies(err, unknownPolicy(op, d))
	}
	return err
}
