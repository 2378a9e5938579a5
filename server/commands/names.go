package commands

import (
	"fmt"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
)

// A limiter of a policy has a name of its own, which begins with "policy|", and where its
// policy declares a layout a second one, which all limits of the policy share. Whatever
// shows, describes or settles limiters by a name that a client sends comes through this file;
// the engine and everything below know own names only.
//
// A plain limiter may have the very name that a layout makes. It comes first: looks describe
// it, and the policy's limiters only when it is idle. Resets forget both.
//
// A user needs permission for the name as sent, and for the own names of what it stands for.

// inspectNamed describes what a name stands for. A name that is wrong cannot be there.
func inspectNamed(srv *Shared, name []byte) (info engine.Info, ok bool) {
	if arg.CheckKey(name) == nil {
		if info, ok = srv.Limiter.Inspect(name); ok {
			return info, true
		}
	}
	if p, key := srv.Limiter.Policies().OfLayout(name); p != nil {
		return inspectPolicy(srv, p, key)
	}
	return info, false
}

// inspectPolicy describes the limit of a policy that binds for a key: the one with the longest
// penalty, or else the one with the least left. It is there until the limiters of all limits
// are idle, and takes as much memory as they do.
func inspectPolicy(srv *Shared, p *engine.Policy, key []byte) (binding engine.Info, ok bool) {
	idleInMs, bytes := int64(0), 0
	for _, name := range p.NamesOf(key) {
		info, live := srv.Limiter.Inspect(name)
		if !live {
			continue
		}
		if !ok || info.PenaltyMs > binding.PenaltyMs || info.PenaltyMs == binding.PenaltyMs && info.Remaining < binding.Remaining {
			binding = info
		}
		if ok = true; idleInMs >= 0 && (info.IdleInMs < 0 || info.IdleInMs > idleInMs) {
			idleInMs = info.IdleInMs
		}
		bytes += info.Bytes
	}
	binding.IdleInMs, binding.Bytes = idleInMs, bytes
	about, _ := srv.Limiter.Inspect(key) // a block of the key denies the checks
	binding.Blocked, binding.BlockedMs, binding.BlockedBy, binding.Reason = about.Blocked, about.BlockedMs, about.BlockedBy, about.Reason
	binding.Everywhere = about.Everywhere
	return binding, ok
}

// resetNamed adds what forgets the limiters that a name stands for: one operation for a plain
// limiter, and one behind it for those of a policy.
func resetNamed(s *Session, name, id []byte) error {
	p, key := s.srv.Limiter.Policies().OfLayout(name)
	if p == nil || arg.CheckKey(name) == nil {
		op, err := s.op(engine.OpReset, name)
		if err != nil {
			return err
		}
		op.ID = id
	}
	if p == nil {
		return nil
	}
	op := s.batch.Next()
	op.Code, op.Key, op.ID = engine.OpResetPolicy, p.NameOf(0, key), id
	return nil
}

func answerReset(s *Session, ops []engine.Op, ds []engine.Decision) { s.Int(resetNames(ops, ds)) }

// resetNames counts the names that had something to forget.
func resetNames(ops []engine.Op, ds []engine.Decision) (sum int64) {
	for i := range ds {
		again := ops[i].Code == engine.OpResetPolicy && i > 0 && ops[i-1].Code == engine.OpReset && ds[i-1].Allowed > 0
		if !again {
			sum += ds[i].Allowed
		}
	}
	return sum
}

// checkBlockable refuses to block a name that a layout makes: a block is of a key, under every
// policy, and one of this name would deny nothing.
func checkBlockable(srv *Shared, name []byte) error {
	if p, key := srv.Limiter.Policies().OfLayout(name); p != nil {
		return resp.Error("ERR " + resp.Quote(name) + " names what policy " + p.Name + " counts: RL.BLOCK " + resp.Printable(key, resp.MaxQuotedBytes) +
			" blocks its key, under every policy")
	}
	return nil
}

// shownName returns the name by which KEYS and SCAN show a limiter. b is memory to use.
func shownName(set *engine.Policies, b, name []byte) (shown []byte, shared bool) {
	if shown, shared, ok := set.ShownAs(b[:0], name); ok {
		return shown, shared
	}
	return name, false
}

// lookUnderPolicy adds, for a name that a layout makes, a look at what the policy would
// answer about its key.
func lookUnderPolicy(s *Session, name []byte) {
	p, key := s.srv.Limiter.Policies().OfLayout(name)
	if p == nil {
		return
	}
	op := s.batch.Next()
	op.Code, op.Text, op.Key, op.Dry = engine.OpCheck, []byte(p.Name), key, true
}

// policyText describes in a line what lookUnderPolicy was answered; ok is false where it was
// not asked, or nothing counts against the key.
func policyText(srv *Shared, ops []engine.Op, ds []engine.Decision) (text string, ok bool) {
	const at = 1
	if len(ops) <= at {
		return "", false
	}
	d, most := &ds[at], ds[at].Limit
	if p := srv.Limiter.Policies().Get(ops[at].Text); p != nil && p.ReportNs > 0 {
		if limits := p.LimitsFor(srv.Limiter.Now(), ops[at].Key); int(d.Part) < len(limits) {
			most = limits[d.Part].Limit.Max
		}
	}
	switch {
	case d.Allowed == 0 && d.Part == engine.NoPart:
		return fmt.Sprintf("blocked%s", forHowLong(d.RetryMs)), true
	case d.ResetMs == 0:
		return "", false
	case d.Allowed == 0:
		return fmt.Sprintf("%d of %d left, denied for another %d ms", d.Remaining, most, d.RetryMs), true
	case d.ResetMs < 0:
		return fmt.Sprintf("%d of %d left", d.Remaining, most), true
	}
	return fmt.Sprintf("%d of %d left, as if never used in %d ms", d.Remaining, most, d.ResetMs), true
}
