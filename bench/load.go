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
	TokenBucket Workload = "token bucket"   // 10 units a second, burst 20
	SlidingLog  Workload = "sliding log"    // exact: at most 100 units in any 10 s
	Denied      Workload = "all denied"     // one unit an hour, used up long before
	Lasting     Workload = "lasting bucket" // one unit an hour, burst a million: keeps its state, denies nothing
	Checked     Workload = "four limits"    // a policy of Lasting and three more limits, which deny nothing either
)

// denies reports whether a workload denies requests for a key that is used all the time.
func (w Workload) denies() bool { return w != Lasting && w != Checked }

// Distribution describes how often each key is requested.
type Distribution string

const (
	Uniform Distribution = ""        // all equally often
	Zipf    Distribution = "zipf"    // the k-th about 1/k^1.1 as often as the first
	OneHot  Distribution = "one key" // always the same
)

// Load describes how requests arrive, and for which keys.
type Load struct {
	Workload     Workload     `json:"workload"`
	Clients      int          `json:"clients"`  // connections
	Pipeline     int          `json:"pipeline"` // requests sent together on a connection
	Keys         int          `json:"keys"`
	Distribution Distribution `json:"distribution,omitempty"`
	KeyBytes     int          `json:"key_bytes,omitempty"` // 0 means usualKeyBytes
	// Filled creates every key before the measurement, on separate servers of the scenario. Only Lasting keeps the
	// keys.
	Filled bool `json:"filled,omitempty"`
	// Held measures the memory of a separate server before connections exist, and while they are held.
	Held bool `json:"held,omitempty"`
	// PerSecond selects an open loop: requests are due at this rate, whether earlier ones are answered or not. 0
	// selects a closed loop, in which each connection waits for its answers.
	PerSecond float64 `json:"per_second,omitempty"`
	// By names the generator that makes the load.
	By GeneratorName `json:"by,omitempty"`
}

const (
	// usualClients is redis-benchmark's default, and the basis of most published results.
	usualClients = 50
	// usualKeys is far more than a CPU cache holds.
	usualKeys = 100_000
	// manyClients is a fleet of connections without pipelining. Each waits for one decision.
	manyClients = 512
	// hotKeys is the number of exhausted keys. They are few, as under an attack, and used up by the first warm-up
	// requests.
	hotKeys = 1000
	// usualKeyBytes is the length of redis-benchmark's keys with our prefix.
	usualKeyBytes = len(keyPrefix) + keyDigits
	// maxRequests bounds a cell after a wrong calibration. No server here answers that many in a minute.
	maxRequests = 200_000_000
)

const (
	// mostClients fits into the usual 20,000 file descriptors of a process.
	mostClients = 10_000
	// mostPipeline fits the deepest pipelines of clients.
	mostPipeline = 10_000
)

// check returns an error for an invalid load.
func (l Load) check() error {
	for _, c := range []struct {
		name        string
		value       int
		least, most int
	}{
		{"connections", l.Clients, 1, mostClients}, {"pipeline", l.Pipeline, 1, mostPipeline},
		{"keys", l.Keys, 1, maxRequests},
	} {
		if c.value < c.least || c.value > c.most {
			return fmt.Errorf("%w: %s must be %d to %d, not %d", ErrBadLoad, c.name, c.least, c.most, c.value)
		}
	}
	if !slices.Contains([]Distribution{Uniform, Zipf, OneHot}, l.Distribution) {
		return fmt.Errorf("%w: keys are chosen uniformly, %s or %s, not %q", ErrBadLoad, Zipf, OneHot,
			l.Distribution)
	}
	if !(l.PerSecond >= 0 && l.PerSecond <= maxRequests) {
		return fmt.Errorf("%w: a rate must be 0 to %d a second, not %v", ErrBadLoad, maxRequests, l.PerSecond)
	}
	return nil
}

func (l Load) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, -P %d -c %d, %s", l.Workload, l.Pipeline, l.Clients, l.keysText())
	if l.PerSecond > 0 {
		fmt.Fprintf(&b, ", open loop at %s/s", rate(l.PerSecond))
	}
	if l.By != OurGenerator {
		fmt.Fprintf(&b, ", load by %s", l.By)
	}
	return b.String()
}

func (l Load) keysText() string {
	switch {
	case l.Distribution == OneHot:
		return string(l.Distribution)
	case l.Distribution != Uniform:
		return fmt.Sprintf("%d keys (%s)", l.Keys, l.Distribution)
	case l.Filled:
		return fmt.Sprintf("%d keys, all there", l.Keys)
	default:
		return fmt.Sprintf("%d keys", l.Keys)
	}
}

// Requests returns how many requests last about d at a rate. It is a whole number of pipelines on every connection, and
// at least one each, so that no pipeline is partly filled.
func (l Load) Requests(perSecond float64, d time.Duration) int {
	round := l.Clients * l.Pipeline
	n := min(perSecond*d.Seconds(), maxRequests)
	return max(1, int(n)/round) * round
}
