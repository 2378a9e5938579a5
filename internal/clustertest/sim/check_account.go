package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weir-project/weir/engine"
)

func say(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// checkCount compares the final use of a bucket that never refills with the answers to clients. Every acknowledged unit
// is counted, once for each ID, and no unit that certainly was not taken.
func checkCount(key string, records []record, used int64) []string {
	low, high := bounds(records)
	if used < low || used > high {
		return []string{say("%s: %d units are used, which should be %d to %d", key, used, low, high)}
	}
	return nil
}

// bounds returns the minimum and maximum units in use after all of the records.
func bounds(records []record) (low, high int64) {
	for _, r := range distinct(records) {
		units := r.op.Cost
		switch {
		case r.outcome == refused, r.outcome == acked && r.answer.Allowed == 0:
			continue
		case r.op.Code == engine.OpRefund:
			low -= units
			if r.outcome == acked {
				high -= units
			}
		default:
			high += units
			if r.outcome == acked {
				low += units
			}
		}
	}
	return low, high
}

// distinct keeps one record of each ID: the first record with the most certain outcome, with the call time of the first
// attempt.
func distinct(records []record) []record {
	var all []record
	best := map[string]int{}
	for _, r := range records {
		at, seen := best[r.id]
		switch {
		case r.id == "" || !seen:
			best[r.id] = len(all)
			all = append(all, r)
		case rank(r) > rank(all[at]):
			r.called = min(r.called, all[at].called)
			all[at] = r
		}
	}
	return all
}

// rank orders outcomes by their certainty about an ID that was sent more than once.
func rank(r record) int { return map[outcome]int{refused: 0, unknown: 1, acked: 2}[r.outcome] }

// checkSameAnswer finds IDs with two different answers.
func checkSameAnswer(records []record) (violations []string) {
	first := map[string]record{}
	for _, r := range records {
		if r.id == "" || r.outcome != acked {
			continue
		}
		was, ok := first[r.id]
		if !ok {
			first[r.id] = r
		} else if was.answer.Allowed != r.answer.Allowed || was.answer.Remaining != r.answer.Remaining {
			violations = append(
				violations, say("%s: the ID %s was answered %+v, then %+v", r.key, r.id, was.answer, r.answer))
		}
	}
	return violations
}

// checkOrder checks a bucket that only fills up. Each answer implies which units it took. No two answers took the same
// unit. A unit that was taken first was not requested after the answer about a later one.
func checkOrder(records []record) (violations []string) {
	takes := slices.DeleteFunc(distinct(records), func(r record) bool { return r.taken() == 0 })
	slices.SortFunc(takes, func(a, b record) int { return cmp.Compare(a.used(), b.used()) })
	var end int64
	var latest time.Duration
	for _, r := range takes {
		if from := r.used() - r.op.Cost; from < end {
			violations = append(violations,
				say("%s: the units %d to %d were admitted at %v, some of them a second time", r.key, from+1,
					r.used(), r.back))
		}
		if r.back < latest {
			violations = append(
				violations, say("%s: the take answered at %v comes after one called at %v", r.key, r.back, latest))
		}
		end, latest = r.used(), max(latest, r.called)
	}
	return violations
}

// checkDenials finds denials of requests that must have fitted.
func checkDenials(records []record) (violations []string) {
	_, high := bounds(records)
	for _, r := range records {
		if r.outcome == acked && r.answer.Allowed == 0 && high+r.op.Cost <= r.answer.Limit {
			violations = append(violations,
				say("%s: denied at %v, although at most %d of %d units were used", r.key, r.back, high, r.answer.Limit))
		}
	}
	return violations
}

// checkCleared follows a key that a single client takes from and resets. An operation with an unknown outcome may still
// happen much later.
func checkCleared(key string, records []record, used int64) (violations []string) {
	var low, high, late int64 // late: units of unknown takes
	uncertain := false        // an unknown reset may still come
	for _, r := range records {
		switch {
		case r.outcome == refused:
		case r.op.Code == engine.OpReset && r.outcome == acked:
			low, high = 0, late
		case r.op.Code == engine.OpReset:
			low, uncertain = 0, true
		case r.outcome == unknown:
			high, late = high+r.op.Cost, late+r.op.Cost
		default:
			high += r.op.Cost
			if !uncertain {
				low += r.op.Cost
			}
			if now := r.used(); now < low || now > high {
				violations = append(
					violations, say("%s: %d units in use at %v, which should be %d to %d", key, now, r.back, low, high))
			}
		}
	}
	if used < low || used > high {
		violations = append(
			violations, say("%s: %d units are used in the end, which should be %d to %d", key, used, low, high))
	}
	return violations
}
