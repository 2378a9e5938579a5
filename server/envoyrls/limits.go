package envoyrls

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/envoyrls/rules"
	"github.com/weir-project/weir/server/service"
)

// limitKey begins the keys of limiters whose limit comes from the configuration.
const limitKey = "envoy|"

// Response header fields as envoyproxy/ratelimit names them by default, and the wait after a denial.
const (
	limitField     = "RateLimit-Limit"
	remainingField = "RateLimit-Remaining"
	resetField     = "RateLimit-Reset"
	retryField     = "Retry-After"
)

// limitCall is a call in a domain of the configuration.
type limitCall struct {
	limits []limitOf // by descriptor
	ops    []engine.Op
	ds     []engine.Decision
}

// limitOf is the limit of one descriptor. Without a Rule it has none, or another descriptor of the call replaces it.
type limitOf struct {
	rules.Match
	op int // its place in limitCall.ops, if it has a Rule that is not unlimited
}

// readLimits finds the limits of a call. Each is a fixed window that travels in the operation.
func readLimits(in *rlspb.Request, domain *rules.Domain) (*limitCall, error) {
	q := &limitCall{limits: make([]limitOf, len(in.Descriptors))}
	var replaced []string
	for i, d := range in.Descriptors {
		l := &q.limits[i]
		if o := d.Limit; o != nil {
			limit := rules.Limit{RequestsPerUnit: o.RequestsPerUnit, Unit: o.Unit}
			l.Match = rules.Match{Rule: &rules.Rule{Limit: limit}, Path: rules.OverridePath(in.Domain, d.Entries)}
			continue
		}
		l.Match, _ = domain.Match(d.Entries)
		if l.Rule != nil {
			replaced = append(replaced, l.Replaces...)
		}
	}
	from := rlsFrom(in.Descriptors)
	q.ops = make([]engine.Op, 0, len(in.Descriptors))
	for i, d := range in.Descriptors {
		l := &q.limits[i]
		if l.Rule == nil || l.Unlimited {
			continue
		}
		if l.Name != "" && slices.Contains(replaced, l.Name) {
			l.Rule = nil
			continue
		}
		limit, err := fixedWindow(l.RequestsPerUnit, l.Unit)
		if err != nil {
			return nil, err
		}
		l.op = len(q.ops)
		q.ops = append(q.ops, engine.Op{Code: engine.OpTake, Key: l.key(in.Domain, d.Entries), Cost: rlsHits(in, d),
			Limit: limit, From: from})
	}
	q.ds = make([]engine.Decision, len(q.ops))
	return q, nil
}

// key returns the key of the limiter: the domain, the unit, and the keys and values of all entries. Requests share a
// limiter if an entry has a pattern. A limit that Envoy sends shares it with one of the configuration that has the same
// unit.
func (l *limitOf) key(domain []byte, entries []*rlspb.Entry) []byte {
	var room [rlsKeyBytes]byte
	key := append(appendEscaped(append(room[:0], limitKey...), domain), '|')
	key = append(key, rlspb.Unit_name[int32(l.Unit)]...)
	for i, e := range entries {
		value := e.Value
		switch {
		case l.Patterns != nil && l.Patterns[i] != "":
			value = []byte(l.Patterns[i])
		case string(e.Key) == remoteAddress:
			value = []byte(arg.KeyOf(string(value)))
		}
		key = appendEscaped(append(appendEscaped(append(key, '|'), e.Key), '|'), value)
	}
	if len(key) > rlsKeyBytes {
		return []byte(limitKey + "#" + hashed(string(key), rlsHashBytes))
	}
	return bytes.Clone(key)
}

func (q *limitCall) operations() []engine.Op { return q.ops }

// decide decides all limits in one call of the limiter.
func (q *limitCall) decide(r *Server, addr string) (*rlspb.Response, error) {
	shadowed := make([]bool, len(q.ops))
	for i := range q.limits {
		if l := &q.limits[i]; l.Rule != nil && !l.Unlimited {
			shadowed[l.op] = l.ShadowMode || l.QuotaMode || q.ops[l.op].Partial
			r.ShowCheck(addr, l.Path, &q.ops[l.op])
		}
	}
	if len(q.ops) > 0 {
		if err := r.DecideShadowed(addr, q.ops, q.ds, func(i int) bool { return shadowed[i] }); err != nil {
			return nil, rlsError(err)
		}
	}
	for i := range q.ds {
		if q.ds[i].Status != engine.OK {
			err := service.StatusError(&q.ops[i], &q.ds[i])
			r.CheckFailed(err)
			return nil, rlsError(err)
		}
	}
	return q.response(r), nil
}

// response answers a decided call as envoyproxy/ratelimit does.
func (q *limitCall) response(r *Server) *rlspb.Response {
	out := &rlspb.Response{OverallCode: rlspb.Code_OK, Statuses: make([]*rlspb.Status, len(q.limits))}
	var binds *rlspb.Status // which the fields show: a denial, or else the smallest remainder
	for i := range q.limits {
		l := &q.limits[i]
		switch {
		case l.Rule == nil:
			r.RLS.Unmatched.Add(1)
			out.Statuses[i] = &rlspb.Status{Code: rlspb.Code_OK}
			continue
		case l.Unlimited:
			out.Statuses[i] = &rlspb.Status{Code: rlspb.Code_OK, LimitRemaining: math.MaxUint32}
			continue
		}
		st := q.status(r, l)
		out.Statuses[i] = st
		switch {
		case st.Code == rlspb.Code_OVER_LIMIT && !l.QuotaMode || l.blocked(q):
			out.OverallCode, binds = rlspb.Code_OVER_LIMIT, st
		case out.OverallCode == rlspb.Code_OK && (binds == nil || st.LimitRemaining < binds.LimitRemaining):
			binds = st
		}
		if st.Code == rlspb.Code_OVER_LIMIT && l.QuotaMode && !l.blocked(q) {
			out.Statuses[i] = &rlspb.Status{Code: rlspb.Code_OK, CurrentLimit: st.CurrentLimit,
				LimitRemaining: st.LimitRemaining}
		}
	}
	if binds != nil && r.fields.Load() {
		addLimitFields(out, binds)
	}
	return out
}

// blocked reports whether the client is blocked. No mode of a limit ignores that.
func (l *limitOf) blocked(q *limitCall) bool {
	return q.ds[l.op].Allowed == 0 && q.ds[l.op].Part == engine.NoPart
}

// status counts the decision about one limit and returns its status.
func (q *limitCall) status(r *Server, l *limitOf) *rlspb.Status {
	op, d, blocked := &q.ops[l.op], q.ds[l.op], l.blocked(q)
	countHits(r.RLS.Limits.Of(l.Path), op, d, l.ShadowMode)
	st := &rlspb.Status{
		Code:               rlspb.Code_OK,
		CurrentLimit:       &rlspb.Limit{Name: l.Name, RequestsPerUnit: l.RequestsPerUnit, Unit: l.Unit},
		LimitRemaining:     clamp32(d.Remaining),
		DurationUntilReset: untilReset(r.Limiter.Now(), op, &d),
	}
	if d.Allowed == 0 && (blocked || !l.ShadowMode) {
		st.Code = rlspb.Code_OVER_LIMIT
	}
	if d.Allowed == 0 && !blocked && (l.ShadowMode || l.QuotaMode) {
		d.Allowed = 1
	}
	r.RLS.Descriptors.Tell(op, &d)
	return st
}

// untilReset returns the time until the window of a decision ends, or of a block that outlasts it, in seconds rounded
// up. It returns nil for a block without end.
func untilReset(now engine.Stamp, op *engine.Op, d *engine.Decision) *durationpb.Duration {
	switch {
	case d.ResetMs > 0:
		return wholeSeconds(d.ResetMs)
	case d.ResetMs < 0:
		return nil
	}
	// Nothing is counted, so the limiter has no window yet.
	left := op.Limit.WindowNs - (now.NowNs+now.WallOffsetNs)%op.Limit.WindowNs
	return &durationpb.Duration{Seconds: (left + int64(time.Second) - 1) / int64(time.Second)}
}

// addLimitFields adds the response header fields of envoyproxy/ratelimit, and Retry-After to a denial.
func addLimitFields(out *rlspb.Response, st *rlspb.Status) {
	add := func(name string, value int64) {
		out.ResponseHeadersToAdd = append(out.ResponseHeadersToAdd,
			&rlspb.Header{Key: name, Value: strconv.FormatInt(value, 10)})
	}
	add(limitField, int64(st.CurrentLimit.RequestsPerUnit))
	add(remainingField, int64(st.LimitRemaining))
	if st.DurationUntilReset == nil {
		return
	}
	add(resetField, st.DurationUntilReset.Seconds)
	if out.OverallCode == rlspb.Code_OVER_LIMIT {
		add(retryField, st.DurationUntilReset.Seconds)
	}
}
