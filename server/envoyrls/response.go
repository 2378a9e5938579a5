package envoyrls

import (
	"encoding/json"
	"math"
	"net/http"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/httpfields"
	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/service"
)

// response answers a decided call. It fails if the limiter did not execute one of the operations.
func (q *rlsRequest) response(s *Server) (*rlspb.Response, error) {
	out := &rlspb.Response{OverallCode: rlspb.Code_OK, Statuses: make([]*rlspb.Status, len(q.Ops))}
	binds := -1
	for i := range q.Ops {
		op, d := &q.Ops[i], &q.ds[i]
		switch d.Status {
		case engine.OK:
			s.RLS.Descriptors.Tell(op, d)
		case engine.UnknownPolicy:
			s.RLS.Unmatched.Add(1)
			s.Log.Debug("an Envoy asks for a policy that does not exist", "policy", q.names[i])
			out.Statuses[i] = &rlspb.Status{Code: rlspb.Code_OK}
			continue
		default:
			return nil, service.StatusError(op, d)
		}
		if op.Code == engine.OpCharge {
			if d.Allowed == 0 {
				return nil, service.StatusError(op, &engine.Decision{Status: engine.OutOfMemory})
			}
			continue
		}
		if d.Allowed > 0 && d.Part == engine.NoPart {
			out.Statuses[i] = &rlspb.Status{Code: rlspb.Code_OK, LimitRemaining: math.MaxUint32}
			continue
		}
		out.Statuses[i] = q.status(i, s.unitOf(op, d))
		if d.Allowed == 0 {
			out.OverallCode = rlspb.Code_OVER_LIMIT
		}
		if binds < 0 || bindsMore(d, &q.ds[binds]) {
			binds = i
		}
	}
	if binds >= 0 {
		quota := s.QuotaOf(q.names[binds], &q.Ops[binds], &q.ds[binds])
		addFields(out, &quota)
	}
	return out, nil
}

// status returns the status of one descriptor that is limited.
func (q *rlsRequest) status(i int, unit rlspb.Unit) *rlspb.Status {
	d := &q.ds[i]
	st := &rlspb.Status{
		Code:           rlspb.Code_OK,
		CurrentLimit:   &rlspb.Limit{Name: q.names[i], RequestsPerUnit: clamp32(d.Limit), Unit: unit},
		LimitRemaining: clamp32(d.Remaining),
	}
	ms := d.ResetMs
	if d.Allowed == 0 {
		st.Code, ms = rlspb.Code_OVER_LIMIT, d.RetryMs
	}
	if ms >= 0 {
		st.DurationUntilReset = wholeSeconds(ms)
	}
	return st
}

// mostSeconds is the longest duration of protobuf: about 10,000 years.
const mostSeconds = 315_576_000_000

// wholeSeconds rounds milliseconds up to seconds, because Envoy cuts them: a wait of 600 ms would become a reset in 0
// seconds.
func wholeSeconds(ms int64) *durationpb.Duration {
	seconds := ms / 1000
	if ms%1000 > 0 {
		seconds++
	}
	return &durationpb.Duration{Seconds: min(seconds, mostSeconds)}
}

func clamp32(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }

// unitOf returns the unit of the limit in a decision if its window has such a length. A bucket has none.
func (s *Server) unitOf(op *engine.Op, d *engine.Decision) rlspb.Unit {
	if op.Code == engine.OpTake {
		return windowUnit(&op.Limit)
	}
	p := s.Here.Policies().Get(op.Text)
	if p == nil { // removed meanwhile
		return rlspb.Unit_NONE
	}
	limits := p.LimitsFor(s.Limiter.Now(), op.Key)
	if int(d.Part) >= len(limits) { // the key is blocked
		return rlspb.Unit_NONE
	}
	return windowUnit(&limits[d.Part].Limit)
}

func windowUnit(l *engine.Limit) rlspb.Unit {
	switch l.Mode {
	case engine.Day:
		return rlspb.Unit_DAY
	case engine.Week:
		return rlspb.Unit_WEEK
	case engine.Month:
		return rlspb.Unit_MONTH
	case engine.Year:
		return rlspb.Unit_YEAR
	}
	for unit, length := range rlsUnits {
		if l.WindowNs == int64(length) {
			return unit
		}
	}
	return rlspb.Unit_NONE
}

// bindsMore reports whether clients are told decision a rather than b. A denial precedes an admission. Of two denials
// the longer wait counts, and of two admissions the smaller remainder.
func bindsMore(a, b *engine.Decision) bool {
	switch {
	case a.Allowed == 0 && b.Allowed == 0:
		return b.RetryMs >= 0 && (a.RetryMs < 0 || a.RetryMs > b.RetryMs)
	case a.Allowed == 0 || b.Allowed == 0:
		return a.Allowed == 0
	}
	return a.Remaining < b.Remaining
}

// addFields adds the fields that /check sends, so that Envoy forwards them to clients. Envoy itself adds the older
// header fields if configured.
func addFields(out *rlspb.Response, quota *httpfields.Quota) {
	fields := http.Header{}
	quota.Set(fields, httpfields.IETF, time.Now())
	if quota.Denied {
		fields.Set("Content-Type", httpfields.ProblemContentType)
		out.RawBody, _ = json.Marshal(quota.Problem(http.StatusTooManyRequests)) // never fails for texts and numbers
	}
	for _, name := range []string{httpfields.RateLimit, httpfields.RateLimitPolicy,
		httpfields.RetryAfter, "Content-Type"} {
		if value := fields.Get(name); value != "" {
			out.ResponseHeadersToAdd = append(out.ResponseHeadersToAdd, &rlspb.Header{Key: name, Value: value})
		}
	}
}
