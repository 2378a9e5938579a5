package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Workload is a kind of limiting, the same for every target that offers it.
type Workload string

const (
	TokenBucket Workload = "token bucket"     // 10 units a second, burst 20
	SlidingLog  Workload = "sliding log"      // exact: at most 100 units in any 10 s
	FixedWindow Workload = "fixed window"     // 100 units in 10 s from the first request
	Denied      Workload = "all denied"       // one unit an hour, long used up
	Lasting     Workload = "lasting bucket"   // one unit an hour, burst a million: stays, denies nothing
	Mixed       Workload = "mixed algorithms" // a third each of token buckets, windows and logs
	Custom      Workload = "command given"    // of a target that somebody else runs

)

// Distribution says which keys are asked for.
type Distribution string

const (
	Uniform Distribution = ""        // each as often as any other
	Zipf    Distribution = "zipf"    // the k-th about 1/k^1.1 as often as the first
	OneHot  Distribution = "one key" // always the same
	AllNew  Distribution = "all new" // never the same twice
)

// Load is how requests arrive, and for what.
type Load struct {
	Workload     Workload     `json:"workload"`
	Clients      int          `json:"clients"`  // connections
	Pipeline     int          `json:"pipeline"` // requests sent together on a connection
	Keys         int          `json:"keys"`
	Distribution Distribution `json:"distribution,omitempty"`
	KeyBytes     int          `json:"key_bytes,omitempty"` // 0 means usualKeyBytes
	Cost         int          `json:"cost,omitempty"`      // units a request takes; 0 means 1
	// DeniedPercent of the requests are for limiters that are used up.
	DeniedPercent int `json:"denied_percent,omitempty"`
	// Filled makes every key before anything is measured, on servers of the
	// scenario's own; it takes Lasting to keep them.
	Filled bool `json:"filled,omitempty"`
	// Held tells the memory of a server, of the scenario's own, before there are
	// connections and while they are held.
	Held bool `json:"held,omitempty"`
	// PerSecond makes it an open loop: requests are due at this rate, answered or not.
	// 0 is a closed loop, in which each connection waits for its answers.
	PerSecond float64 `json:"per_second,omitempty"`
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
	// usualKeyBytes is what redis-benchmark's keys have with our prefix.
	usualKeyBytes = len(keyPrefix) + keyDigits
	// maxRequests keeps a wrong calibration from becoming an endless cell: no server
	// here answers so many in a minute.
	maxRequests = 200_000_000
)

const (
	// mostClients leaves a system's usual 20,000 file descriptors a process some room.
	mostClients = 10_000
	// mostPipeline is what fits the deepest pipelines clients send.
	mostPipeline = 10_000
)

// check says what of a load makes no sense.
func (l Load) check() error {
	for _, c := range []struct {
		name        string
		value       int
		least, most int
	}{
		{"connections", l.Clients, 1, mostClients}, {"pipeline", l.Pipeline, 1, mostPipeline},
		{"keys", l.Keys, 1, maxRequests}, {"cost", l.Cost, 0, maxRequests}, {"denied percent", l.DeniedPercent, 0, 100},
	} {
		if c.value < c.least || c.value > c.most {
			return fmt.Errorf("%w: %s must be %d to %d, not %d", ErrBadLoad, c.name, c.least, c.most, c.value)
		}
	}
	if !slices.Contains([]Distribution{Uniform, Zipf, OneHot, AllNew}, l.Distribution) {
		return fmt.Errorf("%w: keys are chosen uniformly, %s, %s or %s, not %q", ErrBadLoad, Zipf, OneHot, AllNew, l.Distribution)
	}
	if !(l.PerSecond >= 0 && l.PerSecond <= maxRequests) {
		return fmt.Errorf("%w: a rate must be 0 to %d a second, not %v", ErrBadLoad, maxRequests, l.PerSecond)
	}
	return nil
}

func (l Load) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, -P %d -c %d, %s", l.Workload, l.Pipeline, l.Clients, l.keysText())
	if l.Cost > 1 {
		fmt.Fprintf(&b, ", cost %d", l.Cost)
	}
	if l.DeniedPercent > 0 {
		fmt.Fprintf(&b, ", %d %% for used-up limiters", l.DeniedPercent)
	}
	if l.PerSecond > 0 {
		fmt.Fprintf(&b, ", open loop at %s/s", rate(l.PerSecond))
	}
	return b.String()
}

func (l Load) keysText() string {
	switch {
	case l.Distribution == OneHot || l.Distribution == AllNew:
		return string(l.Distribution)
	case l.Distribution != Uniform:
		return fmt.Sprintf("%d keys (%s)", l.Keys, l.Distribution)
	case l.Filled:
		return fmt.Sprintf("%d keys, all there", l.Keys)
	default:
		return fmt.Sprintf("%d keys", l.Keys)
	}
}

// Requests is how many requests last about d at a rate: a whole number of
// pipelines on every connection, so that none ends half-filled, and at least one
// each.
func (l Load) Requests(perSecond float64, d time.Duration) int {
	round := l.Clients * l.Pipeline
	n := min(perSecond*d.Seconds(), maxRequests)
	return max(1, int(n)/round) * round
}

// part is a share of a load's requests that are for one workload.
type part struct {
	workload Workload
	share    float64 // of all requests
	cost     int
}

// parts takes a load apart. Workloads have keys of their own: a limiter's key belongs
// to one algorithm.
func (l Load) parts() []part {
	of := []Workload{l.Workload}
	if l.Workload == Mixed {
		of = []Workload{TokenBucket, FixedWindow, SlidingLog}
	}
	denied := float64(l.DeniedPercent) / 100
	all := mapOf(of, func(w Workload) part { return part{w, (1 - denied) / float64(len(of)), max(l.Cost, 1)} })
	if denied > 0 {
		all = append(all, part{Denied, denied, 1})
	}
	return all
}
