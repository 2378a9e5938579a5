package bench

import (
	"fmt"
	"time"
)

// Workload is a kind of limiting, the same for every target that offers it.
type Workload string

const (
	TokenBucket Workload = "token bucket" // 10 units a second, burst 20
	SlidingLog  Workload = "sliding log"  // exact: at most 100 units in any 10 s
	Denied      Workload = "all denied"   // one unit an hour, long used up
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
	// manyClients wait for one decision each: what a fleet without pipelining is.
	manyClients = 512
	// hotKeys are the exhausted ones: few, as under an attack, and used up by the
	// first of the requests that warm a server up.
	hotKeys = 1000
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

// ClusterSuite returns the loads of the cluster's suite.
func ClusterSuite() []Scenario {
	return []Scenario{
		{TokenBucket, usualClients, 128, usualKeys},
		{TokenBucket, usualClients, 16, usualKeys},
		{TokenBucket, usualClients, 1, usualKeys},
		{TokenBucket, manyClients, 1, usualKeys},
		{Denied, usualClients, 128, hotKeys},
	}
}

func (s Scenario) String() string {
	return fmt.Sprintf("%s, -P %d -c %d, %d keys", s.Workload, s.Pipeline, s.Clients, s.Keys)
}

// Requests is how many requests last about d at a rate: a whole number of
// pipelines on every connection, so that none ends half-filled, and at least one
// each.
func (s Scenario) Requests(perSecond float64, d time.Duration) int {
	round := s.Clients * s.Pipeline
	n := min(perSecond*d.Seconds(), maxRequests)
	return max(1, int(n)/round) * round
}
