package commands

import (
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/millis"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// maxTimeout bounds TIMEOUT of RL.WAIT. It catches mistyped values, because no client keeps a request waiting for an
// hour on purpose.
const maxTimeout = time.Hour

var (
	errStopping = resp.Error("TRYAGAIN not applied, send it again: the server is stopping")

	errWaitToStrike resp.Error = "ERR RL.WAIT accepts RL.STRIKE with COST 0 only, because each try would be another " +
		"strike"
	errWaitWithID resp.Error = "ERR RL.WAIT accepts no ID: to count a repetition once, send the request without " +
		"RL.WAIT, and again with the same ID when its wait is over"
)

func rlWaitCommand() *command {
	return &command{
		name: "RL.WAIT", arity: -5, syntax: "command argument [argument ...] TIMEOUT duration", group: groupDecide,
		flags:   "write denyoom blocking no_multi noscript movablekeys",
		carried: func(args [][]byte) [][]byte { return args[1 : len(args)-2] }, // without TIMEOUT
		summary: "Decide, and let a denied request wait until it is admitted or the time is up",
		details: "Takes any decision that its user may send, with all its arguments except `ID`. A denied request " +
			"waits on the server, without polling, in the queue of its key (of `RL.CHECK`: of its first policy and " +
			"key). The queue is first come, first served on this node, also when a later request asks for less. " +
			"The first request is tried as soon as its limit says that it fits (`retry_after_ms`), or sooner when " +
			"units of its key are released, refunded, reset or unblocked through this node. `RL.COMMIT` and " +
			"`RL.CANCEL` name a hold and no key, so they end no wait early. Decisions without " +
			"`RL.WAIT` do not queue and may take the units first.\n\nEach try is an ordinary decision, and counts " +
			"as one. A request that can never fit (`retry_after_ms` -1) is denied when it is first, without " +
			"waiting for the end. A client that disconnects leaves the queue and takes nothing. A server that " +
			"stops answers `TRYAGAIN`. Later commands on the same connection wait, too. Use a separate connection " +
			"for `RL.WAIT`, with a read timeout above `TIMEOUT`.\n\nAt most 1000 requests wait for one key, and " +
			"10000 in all: the next one is answered `OVERLOADED` at once. Not allowed in a transaction.",
		params: []param{{"command", "a decision, for example `RL.TOKENBUCKET user:42 10/s 100 COST 5`"},
			{"TIMEOUT duration",
				"how long the request may wait, at most 1h; 0: not at all, but queued requests still go first"}},
		reply: "The reply of the decision. When the time is up, it is denied with the numbers of that moment. " +
			"`retry_after_ms` is then 0 if only queued requests were in the way.",
		shown: []example{
			{"RL.WAIT RL.TOKENBUCKET user:42 10/s 1 TIMEOUT 1s", "1 0 0 100 1", "nobody waits: admitted at once"},
			{"RL.WAIT RL.TOKENBUCKET user:42 10/s 1 COST 2 TIMEOUT 1s", "0 0 -1 100 1", "would never fit"},
			{"RL.WAIT RL.TOKENBUCKET user:42 10/s 1 TIMEOUT 0", "0 0 100 100 1", ""},
		},
		run: runRLWait,
	}
}

func runRLWait(s *Session, args [][]byte) {
	r, err := newHeldRequest(s, args)
	if !s.guarded(err) {
		return
	}
	r.Waiter, err = s.srv.Waits.Join(r.queue)
	if !s.guarded(err) {
		return
	}
	defer s.srv.Waits.Leave(r.Waiter)
	select {
	case <-r.Wake:
		if r.front = true; r.try() {
			return
		}
	default:
	}
	start := time.Now()
	s.client.Await(r.wait)
	s.heldFor += time.Since(start)
}

// heldRequest is the waiting decision of one RL.WAIT.
type heldRequest struct {
	s     *Session
	by    *command // RL.WAIT
	cmd   *command
	args  [][]byte
	queue string    // the name of its queue: see service.QueueOf
	until time.Time // when TIMEOUT has passed

	*service.Waiter
	front bool      // the request is the first of its queue
	next  time.Time // if front: when the request fits, according to its last attempt
}

// newHeldRequest reads the arguments of RL.WAIT.
func newHeldRequest(s *Session, args [][]byte) (*heldRequest, error) {
	n := len(args) - 2
	if !limits.Is(args[n], "TIMEOUT") {
		return nil, resp.Error("ERR RL.WAIT must end with TIMEOUT and a duration, like TIMEOUT 2s")
	}
	ns, err := limits.Duration("TIMEOUT", args[n+1])
	if err == nil && ns > int64(maxTimeout) {
		err = limits.Bad("TIMEOUT", "must be at most 1h", args[n+1])
	}
	if err != nil {
		return nil, err
	}
	r := &heldRequest{s: s, by: s.lookup(args[0]), args: args, until: time.Now().Add(time.Duration(ns))}
	b, err := r.plan()
	if err != nil {
		return nil, err
	}
	defer s.srv.Batches.Put(b)
	op := &b.Ops[0]
	switch {
	case len(op.ID) > 0:
		return nil, errWaitWithID
	case op.Code == engine.OpTake && op.Limit.Algorithm == engine.Strike && op.Cost > 0:
		return nil, errWaitToStrike
	}
	r.queue = service.QueueOf(op)
	return r, nil
}

// plan makes the operation of the request for each attempt, because its meaning may depend on the time. A waiting
// request holds no batch.
func (r *heldRequest) plan() (b *service.Batch, err error) {
	r.cmd, b, err = planDecision(r.s, r.by, r.args, engine.OpTake, engine.OpCheck)
	return b, err
}

// wait tries the request whenever it is due. It returns when the request is answered or its client has disconnected.
func (r *heldRequest) wait(gone <-chan struct{}) {
	timer := time.NewTimer(r.nap())
	defer timer.Stop()
	for {
		select {
		case <-gone:
			r.s.Closing = true
			return
		case <-r.s.srv.Stop:
			r.s.fail(errStopping)
			return
		case <-r.Wake:
			r.front, r.next = true, time.Time{}
		case <-timer.C:
		}
		if r.late() {
			r.giveUp()
			return
		}
		select {
		case <-gone: // a disconnected client must take nothing
			r.s.Closing = true
			return
		default:
		}
		if r.front && r.try() {
			return
		}
		timer.Reset(r.nap())
	}
}

// late reports whether the time is up and no attempt was due before.
func (r *heldRequest) late() bool {
	return (r.next.IsZero() || r.next.After(r.until)) && !time.Now().Before(r.until)
}

// nap returns the time until the next attempt or the timeout.
func (r *heldRequest) nap() time.Duration {
	if r.front && r.next.Before(r.until) {
		return time.Until(r.next)
	}
	return time.Until(r.until)
}

// try makes an ordinary decision. It answers the request, or returns false if the request fits later.
func (r *heldRequest) try() (answered bool) {
	s := r.s
	s.srv.Pause.Wait(&r.cmd.Command, s.srv.Stop)
	b, err := r.plan()
	if !s.guarded(err) {
		return true
	}
	defer s.srv.Batches.Put(b)
	ds := b.Decisions()
	err = decideOne(s.srv, b)
	if d := &ds[0]; err == nil && d.Status == engine.OK && d.Allowed == 0 && d.RetryMs > 0 {
		r.next = time.Now().Add(millis.Duration(d.RetryMs))
		return false
	}
	r.answer(b, ds, err)
	return true
}

// giveUp answers a denial with the numbers of a dry run. If the request would fit now, other requests precede it in
// the queue. The retry time is then 0.
func (r *heldRequest) giveUp() {
	b, err := r.plan()
	if !r.s.guarded(err) {
		return
	}
	defer r.s.srv.Batches.Put(b)
	op, ds := &b.Ops[0], b.Decisions()
	cost := op.Cost
	op.Dry = true
	if err = r.s.srv.ReadIndexOf(op.Key); err == nil {
		err = decideOne(r.s.srv, b)
	}
	if d := &ds[0]; err == nil && d.Allowed > 0 {
		op.Cost = 0 // so that the answer shows the numbers without this request
		err = decideOne(r.s.srv, b)
		d.Allowed, d.RetryMs = 0, 0
	}
	op.Dry, op.Cost = false, cost
	r.answer(b, ds, err)
}

func (r *heldRequest) answer(b *service.Batch, ds []engine.Decision, err error) {
	r.s.answer(r.cmd, b.Ops, ds, err)
	if err == nil {
		srv := r.s.srv
		srv.Tell(&srv.Stats.Of(&r.by.Command).Outcomes, b.Ops, ds)
	}
}

// decideOne decides the one operation of a batch, unless this node must redirect it.
func decideOne(srv *Shared, b *service.Batch) error {
	if err := srv.Redirect(&b.Ops[0]); err != nil {
		return err
	}
	return srv.Limiter.Decide(b.Ops, b.Decisions())
}
