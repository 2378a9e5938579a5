package bench

import "errors"

var (
	// ErrToolMissing reports that a required program is not installed.
	ErrToolMissing = errors.New("is not installed")
	// ErrNotADecision reports a reply that the workload's command does not have.
	ErrNotADecision = errors.New("not a decision")
	// ErrNoLimit reports a target that admits everything, and would win because it does not limit.
	ErrNoLimit = errors.New("never denies")
	// ErrMoved reports that the cluster elected another leader during a measurement.
	ErrMoved = errors.New("the leader changed during the measurement")
	// ErrStuck reports that a load did not end because a request was not answered.
	ErrStuck = errors.New("not all requests were answered")
	// ErrCannotLoad reports that redis-benchmark has no such load.
	ErrCannotLoad = errors.New("redis-benchmark cannot make this load")
	// ErrBadLoad reports an invalid load.
	ErrBadLoad = errors.New("no such load")
	// ErrUnknownName reports an unknown name of a scenario, target or suite.
	ErrUnknownName = errors.New("unknown name")
	// ErrNoMarkers reports that a page has no markers for results.
	ErrNoMarkers = errors.New("no markers for the figures")
	// ErrLoadOutput reports unexpected output of the load generator.
	ErrLoadOutput = errors.New("unexpected load generator output")
	// ErrTooFewPairs reports a comparison of two programs that could find no change.
	ErrTooFewPairs = errors.New("too few pairs")
	// ErrTooLong reports that the plan does not fit the time limit.
	ErrTooLong = errors.New("does not fit the time limit")
)
