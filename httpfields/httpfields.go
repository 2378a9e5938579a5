// Package httpfields writes the rate limit fields of HTTP responses: the fields of the IETF draft, the older
// fields in wide use, and Retry-After. weir's HTTP check and the middleware of its Go client both use it.
//
// The package only formats. Its callers decide about a request and choose the style.
package httpfields

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-project/weir/internal/millis"
)

// The names of the fields. No other package repeats them, because the draft
// (draft-ietf-httpapi-ratelimit-headers-11) may still change them.
const (
	RateLimit       = "Ratelimit" // the canonical form of RateLimit in net/http
	RateLimitPolicy = "Ratelimit-Policy"
	XLimit          = "X-Ratelimit-Limit"
	XRemaining      = "X-Ratelimit-Remaining"
	XReset          = "X-Ratelimit-Reset"
	RetryAfter      = "Retry-After"

	quotaParam, windowParam        = "q", "w" // of RateLimit-Policy
	remainingParam, effectiveParam = "r", "t" // of RateLimit
)

// The parts of problem documents, and the bounds of integers and windows in the fields. QuotaExceeded and
// ReducedCapacity are problem types that the draft asks IANA to register.
const (
	QuotaExceeded         = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	QuotaExceededTitle    = "Request cannot be satisfied as assigned quota has been exceeded"
	ReducedCapacity       = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	ReducedCapacityTitle  = "Request cannot be satisfied due to temporary server capacity constraints"
	ViolatedPolicies      = "violated-policies" // a member: the names of policies
	ProblemContentType    = "application/problem+json"
	largestInteger        = 999_999_999_999_999 // of a structured field (RFC 9651)
	smallestWindowSeconds = 1
	// neverSeconds is the Retry-After of a denial for which no wait helps: a year. Without the field, clients try again
	// soon.
	neverSeconds = 365 * 86400
)

// Style selects the fields that are written besides Retry-After. Styles can be combined, except XEpoch and
// XDelta.
type Style uint8

// The styles.
const (
	IETF   Style = 1 << iota // RateLimit and RateLimit-Policy
	XEpoch                   // X-RateLimit-Limit, -Remaining and -Reset in Unix seconds, as GitHub
	XDelta                   // the same fields with -Reset in seconds from now, as Envoy
	None   Style = 0
)

// Quota is the content of the fields. The durations may be Never.
type Quota struct {
	Name       string        // the name of the policy; characters other than printable ASCII are omitted
	Limit      int64         // units; 0: unknown, and only Retry-After is written
	Remaining  int64         // units
	ResetAfter time.Duration // until the limiter is idle
	Window     time.Duration // the time in which Limit units become available again; 0: unknown
	Denied     bool
	RetryAfter time.Duration // if Denied, the time after which the same request fits
	Never      Reason        // if RetryAfter is Never, why no wait helps
}

// Reason says why no wait helps.
type Reason uint8

// The reasons.
const (
	NotKnown  Reason = iota // the caller does not know the reason
	NeverFits               // the request asks for more than the limit
	UsedUp                  // the limit is used up, and its window has no end
	Blocked                 // the key or the address is blocked, and the block has no end
)

// String returns the reason in a sentence.
func (r Reason) String() string {
	switch r {
	case NeverFits:
		return "The request asks for more than the limit ever allows."
	case UsedUp:
		return "The limit is used up, and units never return by themselves."
	case Blocked:
		return "The client is blocked until the block is lifted."
	}
	return "No wait helps."
}

// reasonWords are the reasons as RL.EXPLAIN gives them.
var reasonWords = [...]string{NotKnown: "", NeverFits: "cost", UsedUp: "used", Blocked: "block"}

// Word returns the reason as RL.EXPLAIN gives it.
func (r Reason) Word() string { return reasonWords[r] }

// ReasonOf returns the reason that has a word, or NotKnown.
func ReasonOf(word string) Reason { return Reason(max(slices.Index(reasonWords[:], word), 0)) }

// Set writes the fields of a response into h. now is the time of the response. Set rounds seconds up, so that no client
// retries too early.
func (q Quota) Set(h http.Header, style Style, now time.Time) {
	var room [usualBytes]byte
	f := fields{text: room[:0]}
	switch {
	case q.Denied && q.RetryAfter == Never:
		f.number(RetryAfter, neverSeconds)
	case q.Denied:
		f.number(RetryAfter, max(Seconds(q.RetryAfter), 1))
	}
	if q.Limit > 0 {
		q.limitFields(&f, style, now)
	}
	f.set(h)
}

// limitFields adds all fields but Retry-After.
func (q *Quota) limitFields(f *fields, style Style, now time.Time) {
	if style&IETF != 0 {
		f.text = q.appendPolicy(f.text)
		f.end(RateLimitPolicy)
		f.text = q.appendAvailable(f.text)
		f.end(RateLimit)
	}
	if style&(XEpoch|XDelta) != 0 {
		f.number(XLimit, q.Limit)
		f.number(XRemaining, max(q.Remaining, 0))
	}
	switch {
	case q.ResetAfter == Never:
	case style&XEpoch != 0:
		f.number(XReset, epochSeconds(now.Add(q.ResetAfter)))
	case style&XDelta != 0:
		f.number(XReset, Seconds(q.ResetAfter))
	}
}

func (q *Quota) appendPolicy(b []byte) []byte {
	b = appendItem(b, q.Name, quotaParam, q.Limit)
	if q.Window > 0 {
		b = appendParam(b, windowParam, max(Seconds(q.Window), smallestWindowSeconds))
	}
	return b
}

// appendAvailable appends the remaining units, and the time after which more units are available. For a denial this is
// the retry time, because the draft does not allow a Retry-After that ends before the time in RateLimit.
func (q *Quota) appendAvailable(b []byte) []byte {
	b = appendItem(b, q.Name, remainingParam, q.Remaining)
	window := q.ResetAfter
	if q.Denied {
		window = q.RetryAfter
	}
	if window != Never {
		b = appendParam(b, effectiveParam, Seconds(window))
	}
	return b
}

// appendItem appends an item of a structured field: a string, and an integer parameter.
func appendItem(b []byte, name, param string, n int64) []byte {
	b = append(b, '"')
	for i := range len(name) {
		c := name[i]
		switch {
		case c < ' ' || c > '~':
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		default:
			b = append(b, c)
		}
	}
	return appendParam(append(b, '"'), param, n)
}

func appendParam(b []byte, name string, n int64) []byte {
	b = append(append(append(b, ';'), name...), '=')
	return strconv.AppendInt(b, min(max(n, 0), largestInteger), 10)
}

// Never is the duration until an event that does not happen.
const Never = millis.Never

// Seconds returns d in whole seconds, rounded up. Never becomes a year.
func Seconds(d time.Duration) int64 {
	if d == Never {
		return neverSeconds
	}
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return seconds
}

func epochSeconds(t time.Time) int64 {
	seconds := t.Unix()
	if t.Nanosecond() > 0 {
		seconds++
	}
	return seconds
}

// Problem returns a denial as a problem document (RFC 9457).
func (q Quota) Problem(status int) map[string]any {
	doc := map[string]any{
		"type": QuotaExceeded, "title": QuotaExceededTitle, "status": status, "detail": q.Detail(),
		ViolatedPolicies: []string{q.Name},
	}
	if q.RetryAfter != Never {
		doc["retryAfter"] = max(Seconds(q.RetryAfter), 1)
	}
	return doc
}

// Detail describes a denial in a sentence: "Rate limit exceeded. Try again in 3 seconds."
func (q Quota) Detail() string {
	var b strings.Builder
	b.WriteString("Rate limit exceeded.")
	if q.RetryAfter == Never {
		b.WriteString(" " + q.Never.String())
		return b.String()
	}
	seconds := max(Seconds(q.RetryAfter), 1)
	b.WriteString(" Try again in " + strconv.FormatInt(seconds, 10) + " second")
	if seconds != 1 {
		b.WriteByte('s')
	}
	b.WriteByte('.')
	return b.String()
}
