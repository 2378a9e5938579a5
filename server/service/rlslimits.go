package service

import (
	"math"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/engine"
)

const (
	// maxRLSPaths bounds the names in statistics. A configuration may put values of clients into them.
	maxRLSPaths = 10_000
	// nearLimit is the share of a limit from which hits count as near it, as in envoyproxy/ratelimit.
	nearLimit = float32(0.8)
)

// RLSLimits are the counters of envoyproxy/ratelimit for the limits of its configuration.
type RLSLimits struct {
	mu       sync.RWMutex
	byPath   map[string]*RLSSeries
	byLabels map[RLSLabels]*RLSSeries
}

// RLSLabels are the labels that the Prometheus mapping of envoyproxy/ratelimit gives to the name of a limit: the
// domain and the first two descriptors.
type RLSLabels struct{ Domain, Key1, Key2 string }

// maxRLSPathBytes bounds a name. With detailed_metric and value_to_metric it has values that clients choose.
const maxRLSPathBytes = 1024

// otherRLSLabels are those of all limits beyond maxRLSPaths, and of names that are too long.
var otherRLSLabels = RLSLabels{Domain: "(other)"}

// RLSSeries are the counters of the limits with the same labels. They count hits: the units of requests.
type RLSSeries struct {
	TotalHits, OverLimit, NearLimit, WithinLimit, ShadowMode atomic.Int64
}

// Of returns the counters of a limit by its name, which is a domain and keys with dots between them.
func (l *RLSLimits) Of(path string) *RLSSeries {
	if len(path) > maxRLSPathBytes {
		path = otherRLSLabels.Domain
	}
	l.mu.RLock()
	series := l.byPath[path]
	if series == nil && len(l.byPath) >= maxRLSPaths {
		series = l.byLabels[otherRLSLabels]
	}
	l.mu.RUnlock()
	if series != nil {
		return series
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if series = l.byPath[path]; series != nil {
		return series
	}
	if l.byPath == nil {
		l.byPath, l.byLabels = map[string]*RLSSeries{}, map[RLSLabels]*RLSSeries{}
	}
	full := len(l.byPath) >= maxRLSPaths
	labels := otherRLSLabels
	if !full && path != otherRLSLabels.Domain {
		labels = labelsOf(path)
	}
	if series = l.byLabels[labels]; series == nil {
		series = new(RLSSeries)
		l.byLabels[labels] = series
	}
	if !full {
		l.byPath[path] = series
	}
	return series
}

// Each calls f for all counters.
func (l *RLSLimits) Each(f func(labels RLSLabels, s *RLSSeries)) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for labels, s := range l.byLabels {
		f(labels, s)
	}
}

var (
	rlsColons = strings.NewReplacer(":", "_", "|", "_")
	rlsIPv4   = regexp.MustCompile(`\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}`)
)

// labelsOf returns the labels of a name. Dots divide it, apart from those of IPv4 addresses, which become underscores.
func labelsOf(path string) RLSLabels {
	path = strings.ToValidUTF8(rlsColons.Replace(path), "\uFFFD")
	path = rlsIPv4.ReplaceAllStringFunc(path, func(ip string) string { return strings.ReplaceAll(ip, ".", "_") })
	parts := append(strings.SplitN(path, ".", 4), "", "", "")
	return RLSLabels{parts[0], parts[1], parts[2]}
}

// Count counts a decision under a limit of the configuration. shadow says that the limit denies nothing. Hits of one
// request that cross the limit or 80% of it count on both sides, as in envoyproxy/ratelimit.
func (s *RLSSeries) Count(op *engine.Op, d *engine.Decision, shadow bool) {
	limit, hits := op.Limit.Max, min(op.Cost, math.MaxUint32) // as there, and 2^31 calls cannot overflow a counter
	near := int64(math.Floor(float64(float32(limit) * nearLimit)))
	before, within := limit-d.Remaining, d.Allowed > 0
	if within {
		before -= hits
	}
	s.TotalHits.Add(hits)
	switch after := before + hits; {
	case within:
		s.WithinLimit.Add(hits)
		s.NearLimit.Add(max(after-max(before, near), 0))
	case d.Part == engine.NoPart: // the client is blocked
	default:
		over := after - max(before, limit)
		s.OverLimit.Add(over)
		s.NearLimit.Add(max(limit-max(before, near), 0))
		if shadow {
			s.ShadowMode.Add(over)
		}
	}
}
