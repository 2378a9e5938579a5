package bench

import "errors"

var (
	// ErrToolMissing: a program the harness needs is not installed.
	ErrToolMissing = errors.New("is not installed")
	// ErrNotADecision: a reply is not what the workload's command answers.
	ErrNotADecision = errors.New("not a decision")
	// ErrNoLimit: a target admits everything, so it would win by not limiting.
	ErrNoLimit = errors.New("never denies")
	// ErrMoved: the cluster elected another leader while it was measured.
	ErrMoved = errors.New("the leader changed meanwhile")
	// ErrStuck: a load did not end; some request was not answered.
	ErrStuck = errors.New("not all requests were answered")
	// ErrCannotLoad: redis-benchmark has no such load.
	ErrCannotLoad = errors.New("redis-benchmark cannot make this load")
	// ErrBadLoad: a load that makes no sense.
	ErrBadLoad = errors.New("no such load")
	// ErrUnsupported: a server does not know the command a target needs.
	ErrUnsupported = errors.New("the server does not know")
	// ErrUnknownName: there is no scenario, target or the like of a name.
	ErrUnknownName = errors.New("unknown name")
	// ErrNoMarkers: a page has no place for figures.
	ErrNoMarkers = errors.New("no place for figures")
	// ErrNotAReport: a file is not what this harness writes.
	ErrNotAReport = errors.New("not a report of weir-bench")
	// ErrLoadOutput: the load generator's output is not what it should be.
	ErrLoadOutput = errors.New("unexpected load generator output")
	// ErrTooLong: the plan does not fit the time limit.
	ErrTooLong = errors.New("does not fit the time limit")
)
