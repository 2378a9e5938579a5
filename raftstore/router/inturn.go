package router

import "errors"

// maxFailed is the number of groups that may fail before a change gives up. The attempt in a group without a leader
// takes seconds, and without a majority every group is one.
const maxFailed = 4

// inTurn makes a change in one group after the other. It goes on after an error, so that one group without a leader
// does not hinder the others, and gives up after maxFailed errors.
func (r *Router) inTurn(change func(group int) error) error {
	errs, failed := make([]error, len(r.all())), 0
	for i := range errs {
		if failed == maxFailed {
			errs[i] = errUntried
			continue
		}
		if errs[i] = change(i); errs[i] != nil && !errors.Is(errs[i], errLast) {
			failed++
		}
	}
	return joinResults(errs)
}
