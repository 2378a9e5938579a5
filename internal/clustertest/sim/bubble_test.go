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

// bubble runs a simulation. That goroutines remain is a violation, unless it was
// noted before what they belong to, or the Raft library is known to leave them.
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

// known are the goroutines that earlier bubbles left, as "goroutine 7".
var known = map[string]bool{}

// strays are the stacks of the goroutines that are left in the last bubble.
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

// abandoned are functions of goroutines that the Raft library leaves behind.
var abandoned = []string{
	// A handover that it neither ends nor gives up (hashicorp/raft issue 696): the leader
	// was deposed before it looked what its successor lacks, and whoever would tell it has
	// gone. A node that leads again in that state refuses everything, until its watchdog
	// ends the process.
	"raft.(*Raft).leadershipTransfer(",
	"raft.(*Raft).leaderLoop.func2()",
	// An answer to what it accepted at the moment it shut down: nobody waits for that
	// goroutine, and in earnest the process ends with the node.
	"raftstore.(*Node).await.func1()",
}

func isAbandoned(stack string) bool {
	return slices.ContainsFunc(abandoned, func(f string) bool { return strings.Contains(stack, f) })
}
