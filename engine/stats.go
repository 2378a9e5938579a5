package engine

import "github.com/weir-project/weir/engine/internal/rule"

// Stats are the counters of a table.
type Stats struct {
	Keys           int64                     // keys with a limiter that is not idle, or with a block
	KeysBy         [rule.NumAlgorithms]int64 // limiters by algorithm; NoAlgorithm: blocks
	MemoryBytes    int64                     // pages, index, limits
	MaxMemoryBytes int64                     // 0: no bound
	Expired        int64                     // idle entries collected
	Evicted        int64                     // entries dropped for memory before they were idle
	ForgivenUnits  int64                     // units that counted against a limit until an eviction
	Admitted       [rule.NumAlgorithms]int64
	Denied         [rule.NumAlgorithms]int64
	Strikes        int64 // strikes that counted; for limits with Attempts, all attempts
	Successes      int64 // attempts that succeeded
	Delays         int64 // strikes that were admitted with a delay
	Penalties      int64 // penalties that strikes began
	Lockouts       int64 // penalties of the last step
	Events         int64 // events ever written
	EventsDropped  int64 // events that the log has no longer
	EventsBytes    int64 // memory of the events that it has
}

// Add adds the counters of another table.
func (s *Stats) Add(other *Stats) {
	for i := range s.KeysBy {
		s.KeysBy[i] += other.KeysBy[i]
		s.Admitted[i] += other.Admitted[i]
		s.Denied[i] += other.Denied[i]
	}
	for _, pair := range [...]struct {
		sum *int64
		n   int64
	}{
		{&s.Keys, other.Keys}, {&s.MemoryBytes, other.MemoryBytes}, {&s.MaxMemoryBytes, other.MaxMemoryBytes},
		{&s.Expired, other.Expired}, {&s.Evicted, other.Evicted}, {&s.ForgivenUnits, other.ForgivenUnits},
		{&s.Strikes, other.Strikes}, {&s.Successes, other.Successes}, {&s.Delays, other.Delays},
		{&s.Penalties, other.Penalties}, {&s.Lockouts, other.Lockouts}, {&s.Events, other.Events},
		{&s.EventsDropped, other.EventsDropped}, {&s.EventsBytes, other.EventsBytes},
	} {
		*pair.sum += pair.n
	}
}
