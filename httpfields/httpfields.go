// Package httpfields writes what a rate limiter tells HTTP clients: the fields of the
// IETF draft, those in wide use before it, and Retry-After. It is a package of its own
// because weir's HTTP check and the middleware of its Go client both write them.
package httpfields

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The names of the fields. They stand here only: the draft (draft-ietf-httpapi-
// ratelimit-headers-11) still moves.
const (
	RateLimit       = "Ratelimit" // as net/http spells RateLimit
	RateLimitPolicy = "Ratelimit-Policy"
	XLimit          = "X-Ratelimit-Limit"
	XRemaining      = "X-Ratelimit-Remaining"
	XReset          = "X-Ratelimit-Reset"
	RetryAfter      = "Retry-After"

	quotaParam, windowParam        = "q", "w" // of RateLimit-Policy
	remainingParam, effectiveParam = "r", "t" // of RateLimit
)

// Problem types that the draft asks IANA for, and their titles.
const (
	QuotaExceeded         = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	QuotaExceededTitle    = "Request cannot be satisfied as assigned quota has been exceeded"
	ReducedCapacity       = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	ReducedCapacityTitle  = "Request cannot be satisfied due to temporary server capacity constraints"
	ViolatedPolicies      = "violated-policies" // a member: the names of policies
	ProblemContentType    = "application/problem+json"
	largestInteger        = 999_999_999_999_999 // of a structured field (RFC 9651)
	never                 = time.Duration(-1)
	smallestWindowSeconds = 1
)

// Style says which fields are written besides Retry-After. Styles can be combined, but
// for the two ways to write X-RateLimit-Reset.
type Style uint8

// The styles.
const (
	IETF   Style = 1 << iota // RateLimit and RateLimit-Policy
	XEpoch                   // X-RateLimit-Limit, -Remaining and -Reset in Unix seconds, as GitHub
	XDelta                   // the same, -Reset in seconds from now, as Envoy
	None   Style = 0
)

// Quota is what there is to tell. Negative durations mean never.
type Quota struct {
	Name       string // of the policy; other characters than printable ASCII are left out
	Limit      int64  // 0: nothing is known but RetryAfter
	Remaining  int64
	ResetAfter time.Duration // until nothing is used any more
	Window     time.Duration // in which Limit comes back; 0: not known
	Denied     bool
	RetryAfter time.Duration // of a denial
}

// Set writes the fields into h. Seconds are rounded up, so that nobody comes too early.
func (q Quota) Set(h http.Header, style Style, now time.Time) {
	var room [usualBytes]byte
	f := fields{text: room[:0]}
	if q.Denied && q.RetryAfter >= 0 {
		f.number(RetryAfter, max(Seconds(q.RetryAfter), 1))
	}
	if q.Limit > 0 {
		q.tell(&f, style, now)
	}
	f.set(h)
}

// tell writes what there is to tell of a limit.
func (q *Quota) tell(f *fields, style Style, now time.Time) {
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
	case q.ResetAfter < 0:
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

// appendAvailable says how much is left, and for how long no more than that: of a denial
// until the time at which to come back, which Retry-After must not be earlier than.
func (q *Quota) appendAvailable(b []byte) []byte {
	b = appendItem(b, q.Name, remainingParam, q.Remaining)
	window := q.ResetAfter
	if q.Denied {
		window = q.RetryAfter
	}
	if window >= 0 {
		b = appendParam(b, effectiveParam, Seconds(window))
	}
	return b
}

// appendItem writes a structured field's item: a string, and an integer parameter.
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

// Seconds is d in whole seconds, rounded up.
func Seconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}

func epochSeconds(t time.Time) int64 {
	seconds := t.Unix()
	if t.Nanosecond() > 0 {
		seconds++
	}
	return seconds
}

// Problem is a denial as a problem document (RFC 9457).
func (q Quota) Problem(status int) map[string]any {
	doc := map[string]any{
		"type": QuotaExceeded, "title": QuotaExceededTitle, "status": status, "detail": q.Detail(), ViolatedPolicies: []string{q.Name},
	}
	if q.RetryAfter >= 0 {
		doc["retryAfter"] = max(Seconds(q.RetryAfter), 1)
	}
	return doc
}

// Detail is a denial in words: "Rate limit exceeded. Try again in 3 seconds."
func (q Quota) Detail() string {
	var b strings.Builder
	b.WriteString("Rate limit exceeded.")
	if q.RetryAfter == never {
		b.WriteString(" The request asks for more than the limit ever allows.")
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
