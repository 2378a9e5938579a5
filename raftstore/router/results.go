package router

import (
	"errors"
	"fmt"
)

// errLast is the result of a change for a group that is changed last, and errUntried for one that was not tried.
var (
	errLast    = errors.New("this group is changed last")
	errUntried = errors.New("not tried")
)

// joinResults is the result of a change in several groups, from the result of each. No other function makes one. It is
// nil if every group made the change. If no group did, it is the first error. Otherwise it says how many groups have
// the change, and wraps no error of a group, because such an error says that nothing was changed. The change does
// nothing in a group that has it, so a caller may repeat it.
func joinResults(errs []error) error {
	done, not, unknown := 0, 0, 0
	var why error
	var named string // why, with its group
	for i, err := range errs {
		switch {
		case err == nil:
			done++
			continue
		case errors.Is(err, errLast), errors.Is(err, errUntried):
			continue
		case outcomeOf(err).MayBeDone():
			unknown++
		default:
			not++
		}
		if why == nil {
			why, named = err, fmt.Sprintf("group %d: %v", i, err)
		}
	}
	switch {
	case why == nil:
		return nil
	case done == 0 && (unknown == 0 || not == 0):
		return why
	case unknown == 0:
		return fmt.Errorf("%d of %d groups have the change, so repeat the command: %s", done, len(errs), named)
	}
	return fmt.Errorf("%d of %d groups have the change, and %d may have it, so repeat the command: %s", done, len(errs),
		unknown, named)
}
