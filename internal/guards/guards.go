// Package guards counts how often each guard of a node against a rare race has refused something. Package sim reads the
// counts and reports which guards a run has exercised.
package guards

import "sync/atomic"

// Guard is one check. All nodes of a process share its count.
type Guard struct {
	name string
	hits atomic.Int64
}

// all lists the guards of the program. Only the initialization of this package adds to them.
var all []*Guard

func newGuard(name string) *Guard {
	g := &Guard{name: name}
	all = append(all, g)
	return g
}

// Hit counts a refusal. A guard calls it when it refuses, and never when it passes.
func (g *Guard) Hit() { g.hits.Add(1) }

// Counts returns how often each guard has refused something, by its name.
func Counts() map[string]int64 {
	counts := make(map[string]int64, len(all))
	for _, g := range all {
		counts[g.name] = g.hits.Load()
	}
	return counts
}
