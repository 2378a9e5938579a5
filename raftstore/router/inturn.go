package router

import (
	"errors"
	"fmt"
)

// maxFailed is the number of groups that may fail before a change gives up. The attempt in a group without a leader
// takes seconds, and without a majority every group is one.
const maxFailed = 4

// errLast is the result of a change for a group that is changed last.
var errLast = errors.New("this group is changed last")

// inTurn makes a change in one group after the other. It goes on after an error, so that one group without a leader
// does not hinder the others, and gives up after maxFailed errors. The change does nothing in a group that has it, so a
// caller repeats it after an error. The error is that of the first group that failed if no group has the change.
// Otherwise it says how many groups have the change, and wraps no error, because these say that nothing was changed.
func inTurn(groups []Group, change func(Group) error) error {
	done, failed := 0, 0
	var why error
	for i, g := range groups {
		switch err := change(g); {
		case err == nil:
			done++
		case errors.Is(err, errLast):
		case why == nil:
			why = fmt.Errorf("group %d: %w", i, err)
			fallthrough
		default:
			failed++
		}
		if failed == maxFailed {
			break
		}
	}
	if failed == 0 || done == 0 {
		return why
	}
	return fmt.Errorf("%d of %d groups have the change, so repeat the command: %v", done, len(groups), why)
}
