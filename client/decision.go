package client

import (
	"fmt"
	"time"

	"github.com/weir-project/weir/internal/millis"
)

// Never is a RetryAfter or ResetAfter without end: the request asks for more than the limit, or the limiter
// does not become idle by itself. It is the longest duration: a loop that sleeps for RetryAfter does not spin.
const Never = millis.Never

// Source names what decided.
type Source uint8

// The sources.
const (
	FromServer   Source = iota + 1 // weir decided
	FromMemory                     // weir denied the key earlier, and its retry time has not come
	FromFallback                   // weir was not there, and Options.WhenDown decided
	FromBusy                       // weir was busy or did not answer in time: denied, whatever WhenDown is
)

// String returns the name of the source for logs and metrics.
func (s Source) String() string {
	switch s {
	case FromServer:
		return "server"
	case FromMemory:
		return "memory"
	case FromFallback:
		return "fallback"
	case FromBusy:
		return "busy"
	}
	return "none"
}

// Decision is the answer to a Request.
type Decision struct {
	Allowed bool
	// Granted is the units taken: the cost of an admitted request, or with Partial the part that was granted.
	Granted int64
	// Remaining is the number of whole units that could still be taken.
	Remaining int64
	// RetryAfter of a denial is the time after which the same request fits, if nobody else takes the units, or
	// Never. If the request is admitted, it is how long the caller must delay it, usually 0.
	RetryAfter time.Duration
	// ResetAfter is the time until the limiter is idle, or Never.
	ResetAfter time.Duration
	// Limit is the burst, capacity or maximum in force, or 0 if it is not known.
	Limit int64
	// Policy names the policy whose limit the other fields describe, if the request names policies. Reserve leaves
	// it empty.
	Policy string
	Source Source
	paid   string // see Paid
}

// decisionOf parses the reply to a request.
func decisionOf(q *Request, reply any) (Decision, error) {
	list, ok := reply.([]any)
	var five [5]int64
	ok = ok && len(list) >= len(five)
	for i := 0; ok && i < len(five); i++ {
		five[i], ok = list[i].(int64)
	}
	if !ok {
		return Decision{}, fmt.Errorf("%w: to %s: %v", ErrReply, q.Rule.name, reply)
	}
	d := decisionFrom(q, five)
	d.Source = FromServer
	if q.Rule.policy != "" && q.hold == 0 && len(list) > len(five) {
		d.Policy, _ = list[len(five)].(string)
	}
	d.paid = paidIn(list)
	return d, nil
}

// decisionFrom converts the five integers of a decision: units granted (or 1 for allowed), units remaining, retry
// time and reset time in milliseconds, and the limit.
func decisionFrom(q *Request, five [5]int64) Decision {
	d := Decision{
		Allowed: five[0] > 0, Remaining: five[1], RetryAfter: millis.Wait(five[2]), ResetAfter: millis.Wait(five[3]),
		Limit: five[4],
	}
	switch {
	case !d.Allowed:
	case q.Partial:
		d.Granted = five[0]
	default:
		d.Granted = q.cost()
	}
	return d
}
