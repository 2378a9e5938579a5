package bench

import "time"

// Workload is a kind of limiting, the same for every target that offers it.
type Workload string

const (
	TokenBucket Workload = "token bucket" // 10 units a second, burst 20
	SlidingLog  Workload = "sliding log"  // exact: at most 100 units in any 10 s
)

// Scenario is a load: which workload, and how it arrives.
type Scenario struct {
	Workload Workload `json:"workload"`
	Clients  int      `json:"clients"`  // connections
	Pipeline int      `json:"pipeline"` // requests sent together on a connection
	Keys     int      `json:"keys"`     // chosen from uniformly
}

const (
	// usualClients is redis-benchmark's own default, and what most published
	// figures use.
	usualClients = 50
	// usualKeys is far more than a CPU cache holds.
	usualKeys = 100_000
	// maxRequests keeps a wrong calibration from becoming an endless cell: no server
	// here answers so many in a minute.
	maxRequests = 200_000_000
)

// Standard returns the short suite.
func Standard() []Scenario {
	return []Scenario{
		{TokenBucket, usualClients, 128, usualKeys},
		{TokenBucket, usualClients, 16, usualKeys},
		{TokenBucket, usualClients, 1, usualKeys},
		{SlidingLog, usualClients, 128, usualKeys},
	}
}

// Requests is how many requests last about d at a rate: a whole number of
// pipelines on every connection, so that none ends half-filled, and at least one
// each.
func (s Scenario) Requests(perSecond float64, d time.Duration) int {
	round := s.Clients * s.Pipeline
	n := min(perSecond*d.Seconds(), maxRequests)
	return max(1, int(n)/round) * round
}
