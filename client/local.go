package client

import (
	"time"

	"github.com/weir-project/weir/engine"
)

const (
	// localMemoryBytes bounds the local limiter: about half a million keys. At the bound it evicts the keys
	// nearest to idle.
	localMemoryBytes = 32 << 20
	// localShards is enough for the threads of a large machine.
	localShards = 16
)

// localLimiter decides in this process with weir's engine, under a fraction of each limit. It keeps its state
// from one outage to the next.
type localLimiter struct {
	fraction float64
	table    *engine.Table
	start    time.Time
	offsetNs int64
	idle     *idleKeys // nil: limiters are kept until they are idle
}

func newLocalLimiter(fraction float64) *localLimiter {
	now := time.Now()
	return &localLimiter{
		fraction: fraction,
		table:    engine.NewTable(engine.Options{Shards: localShards, MaxMemoryBytes: localMemoryBytes}),
		start:    now,
		offsetNs: now.UnixNano() - 1,
	}
}

// now returns the time since the start by the monotonic clock, so that a step of the wall clock refills
// nothing. The wall offset only aligns windows.
func (l *localLimiter) now() engine.Stamp {
	return engine.Stamp{NowNs: int64(time.Since(l.start)) + 1, WallOffsetNs: l.offsetNs}
}

// decide answers a request. It denies a request that the table cannot decide: under a policy without known
// limits, or on a key that belongs to another algorithm.
func (l *localLimiter) decide(q *Request) Decision {
	l.forgetIdle(q)
	op := engine.Op{
		Key: []byte(q.Key), Cost: q.cost(), Partial: q.Partial, WaitNs: int64(q.MaxWait), High: q.High,
		TTLNs: int64(q.Rule.ttl), Text: []byte(q.holder),
	}
	if q.Rule.policy == "" {
		op.Limit = scaled(q.Rule.local[0], l.fraction)
	} else {
		l.define(q.Rule)
		op.Code, op.Text = engine.OpCheck, []byte(q.Rule.policy)
		op.Else = q.elseOf()
		for _, p := range q.others() {
			op.Also = append(op.Also, engine.Pair{Policy: []byte(p.Policy), Key: []byte(p.Key)})
		}
		if q.hold > 0 {
			op.Code, op.TTLNs, op.ID = engine.OpReserve, int64(q.hold), []byte(q.ID)
			op.Keep = q.ExpireTake
		}
	}
	d := l.do(op)
	if d.Status != engine.OK {
		return Decision{RetryAfter: maxProbePause, Limit: q.Rule.max, Policy: q.Rule.policy}
	}
	answer := decisionFrom(q, [5]int64{d.Allowed, d.Remaining, d.RetryMs, d.ResetMs, d.Limit})
	if q.Rule.policy != "" {
		answer.Policy, answer.paid = string(op.PairAt(int(d.Pair)).Policy), d.Value
	}
	return answer
}

func (l *localLimiter) do(op engine.Op) engine.Decision {
	ops, out := [1]engine.Op{op}, [1]engine.Decision{}
	l.table.Decide(l.now(), ops[:], out[:])
	return out[0]
}

// define adds the rules that stand in for a policy to the table. If two rules have the same policy name, the
// rule used first is in force.
func (l *localLimiter) define(r *Rule) {
	if len(r.local) == 0 || l.table.Policies().Get([]byte(r.policy)) != nil {
		return
	}
	limits := make([]engine.Limit, len(r.local))
	for i, limit := range r.local {
		limits[i] = scaled(limit, l.fraction)
	}
	change := &engine.PolicyChange{Do: engine.PolicySet, Terms: r.terms(limits)}
	l.do(engine.Op{Code: engine.OpPolicy, Key: []byte(r.policy), Policy: change})
}

// refund gives back units of a rule that is not a policy.
func (l *localLimiter) refund(q *Request, n int64) {
	if q.Rule.policy == "" {
		l.do(engine.Op{Code: engine.OpRefund, Key: []byte(q.Key), Cost: n})
	}
}

// forgive resets the strikes of policies for keys. For a pair without a policy it resets the limiter of the
// key.
func (l *localLimiter) forgive(pairs []Pair) {
	for _, p := range pairs {
		op := engine.Op{Code: engine.OpForgive, Key: []byte(p.Key), Text: []byte(p.Policy)}
		if p.Policy == "" {
			op = engine.Op{Code: engine.OpReset, Key: []byte(p.Key)}
		}
		l.do(op)
	}
}
