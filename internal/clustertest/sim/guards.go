package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-project/weir/internal/clustertest/ledger"
	"github.com/weir-project/weir/internal/guards"
)

// countGuards records how often each guard has refused something since the counts before. Simulations in one process
// run one after the other.
func (r *Report) countGuards(before map[string]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, n := range guards.Counts() {
		r.Guards[name] += int(n - before[name])
	}
}

// idle returns the names of the guards that have refused nothing.
func (r *Report) idle() (names []string) {
	for name, n := range r.Guards {
		if n == 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// guards formats which guards were exercised, and how often.
func (r *Report) guards() string {
	idle := r.idle()
	return fmt.Sprintf("guards: %d of %d exercised: %s\nguards not exercised: %s",
		len(r.Guards)-len(idle), len(r.Guards), ledger.Counts(r.Guards), strings.Join(idle, ", "))
}
