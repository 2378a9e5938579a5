package sim

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weir-project/weir/internal/guards"
)

// bubble runs a simulation. A goroutine that remains afterwards is a violation, unless the report already counted a
// leak or the goroutine is listed in abandoned.
func bubble(t *testing.T, c Config, r *Report) {
	defer func() {
		left := recover()
		if left == nil {
			return
		}
		all := strays()
		if r.Leaks > 0 {
			return
		}
		if strange := slices.DeleteFunc(slices.Clone(all), isAbandoned); len(all) == 0 || len(strange) > 0 {
			r.Violations = append(
				r.Violations, fmt.Sprintf("seed %d: %v\n%s", c.Seed, left, strings.Join(strange, "\n\n")))
			return
		}
		r.Leaks++
	}()
	before := guards.Counts()
	defer r.countGuards(before)
	synctest.Test(t, func(*testing.T) { Run(c, r) })
}

// known holds the names of goroutines that earlier bubbles left behind, such as "goroutine 7".
var known = map[string]bool{}

// strays returns the stacks of the goroutines that the last bubble left behind.
func strays() (left []string) {
	all := make([]byte, 4<<20)
	for _, stack := range strings.Split(string(all[:runtime.Stack(all, true)]), "\n\n") {
		name, rest, _ := strings.Cut(stack, " [")
		state, _, _ := strings.Cut(rest, "\n")
		if strings.Contains(state, "synctest bubble") && !known[name] {
			known[name] = true
			left = append(left, stack)
		}
	}
	return left
}

// abandoned lists functions whose goroutines the Raft library leaves behind.
var abandoned = []string{
	// Leadership transfer can hang for ever (hashicorp/raft issue 696). The leader is deposed before it looks up how
	// far its successor has replicated, and nothing reports that any more. A node that becomes leader again in that
	// state refuses every request until its watchdog ends the process.
	"raft.(*Raft).leadershipTransfer(",
	"raft.(*Raft).leaderLoop.func2()",
}

func isAbandoned(stack string) bool {
	return slices.ContainsFunc(abandoned, func(f string) bool { return strings.Contains(stack, f) })
}
