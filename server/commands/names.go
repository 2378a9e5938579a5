package commands

import (
	"fmt"
	"strconv"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
)

// A limiter of a policy has its own name, which begins with "policy|". If its policy declares a layout, it also has a
// second name, which all limits of the policy share. This file resolves every name by which a client shows, describes
// or corrects limiters. The engine and the packages below it know own names only.
//
// A plain limiter may have the same name as a layout makes, if it is older than the layout. It takes precedence: looks
// describe the plain limiter, and describe the policy's limiters only if it is idle. Resets forget both. No command
// takes from it or makes another one (checkPlainNames).
//
// A user needs permission for the name as sent, and for the own names of the limiters behind it.

// inspectNamed describes the limiters behind a name. An invalid name has no limiter.
func inspectNamed(v limiter.View, name []byte) (info engine.Info, ok bool) {
	if arg.CheckKey(name) == nil {
		if info, ok = v.Inspect(name); ok {
			return info, true
		}
	}
	if p, key := v.Policies().OfLayout(name); p != nil {
		return inspectPolicy(v, p, key)
	}
	return info, false
}

// inspectPolicy describes the limit of a policy that binds for a key: the limit with the longest penalty, or else the
// limit with the fewest units left. ok is false when all limiters of the policy for the key are idle. IdleInMs is the
// time until then, and Bytes is the memory of all these limiters.
func inspectPolicy(v limiter.View, p *engine.Policy, key []byte) (binding engine.Info, ok bool) {
	idleInMs, bytes := int64(0), 0
	for _, name := range p.NamesOf(key) {
		info, live := v.Inspect(name)
		if !live {
			continue
		}
		if !ok || info.PenaltyMs > binding.PenaltyMs || info.PenaltyMs == binding.PenaltyMs &&
			info.Remaining < binding.Remaining {
			binding = info
		}
		if ok = true; idleInMs >= 0 && (info.IdleInMs < 0 || info.IdleInMs > idleInMs) {
			idleInMs = info.IdleInMs
		}
		bytes += info.Bytes
	}
	binding.IdleInMs, binding.Bytes = idleInMs, bytes
	about, _ := v.Inspect(key) // a block of the key denies the policy's checks of the key
	binding.Blocked, binding.BlockedMs, binding.BlockedBy, binding.Reason = about.Blocked, about.BlockedMs,
		about.BlockedBy, about.Reason
	binding.Everywhere = about.Everywhere
	return binding, ok
}

// distinctNames returns the names of a reset without repetitions, and without an own name if another name stands for
// the whole policy. Each limiter is then reset once, and the ID of the command belongs to one request on each key.
func distinctNames(set *engine.Policies, names [][]byte) [][]byte {
	if len(names) < 2 {
		return names
	}
	whole, seen := make(map[string]bool), make(map[string]bool, len(names))
	for _, name := range names {
		if p, key := set.OfLayout(name); p != nil {
			whole[string(p.NameOf(0, key))] = true
		}
	}
	distinct := make([][]byte, 0, len(names))
	for _, name := range names {
		if !seen[string(name)] && !whole[string(name)] {
			distinct = append(distinct, name)
		}
		seen[string(name)] = true
	}
	return distinct
}

// resetNamed adds the operations that forget the limiters behind a name: one for a plain limiter, and one after it for
// the limiters of a policy.
func resetNamed(s *Session, name, id []byte) error {
	p, key := s.srv.Here.Policies().OfLayout(name)
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

// resetNames returns how many names had state to forget.
func resetNames(ops []engine.Op, ds []engine.Decision) (sum int64) {
	for i := range ds {
		again := ops[i].Code == engine.OpResetPolicy && i > 0 && ops[i-1].Code == engine.OpReset && ds[i-1].Allowed > 0
		if !again {
			sum += ds[i].Allowed
		}
	}
	return sum
}

// checkBlockable refuses to block a name that a layout makes. A block belongs to a key, under every policy, so a block
// of such a name would deny nothing.
func checkBlockable(srv *Shared, name []byte) error {
	if p, key := srv.Here.Policies().OfLayout(name); p != nil {
		return resp.Error("ERR " + quote.Text(name) + " names what policy " + p.Name + " counts: RL.BLOCK " +
			quote.Printable(key, quote.MaxBytes) +
			" blocks its key, under every policy")
	}
	return nil
}

// checkPlainNames refuses operations on a plain limiter or string under a name that a layout makes. Such a limiter
// would count beside the limiters of the policy, and nobody who reads the name would see both.
func checkPlainNames(set *engine.Policies, ops []engine.Op) error {
	for i := range ops {
		switch op := &ops[i]; op.Code {
		case engine.OpTake, engine.OpIncr, engine.OpScript, engine.OpRelease, engine.OpRenew, engine.OpRefund:
			p, key := set.OfLayout(op.Key)
			if p == nil || op.Code == engine.OpScript && op.Script.ID == engine.CountGet || engine.Reserved(op.Key) {
				continue
			}
			shown := quote.Printable(key, quote.MaxBytes)
			return resp.Error("ERR " + quote.Text(op.Key) + " names what policy " + p.Name + " counts for " + shown +
				": use RL.CHECK " + p.Name + " " + shown + "; give back by " + string(p.NameOf(0, key)))
		}
	}
	return nil
}

// shownName returns the name by which KEYS and SCAN show a limiter, and whether several limiters share it. shown may
// use the memory of b.
func shownName(set *engine.Policies, b, name []byte) (shown []byte, shared bool) {
	if shown, shared, ok := set.ShownAs(b[:0], name); ok {
		return shown, shared
	}
	return name, false
}

// lookUnderPolicy adds a dry run of the policy for a name that a layout makes.
func lookUnderPolicy(s *Session, name []byte) {
	p, key := s.srv.Here.Policies().OfLayout(name)
	if p == nil {
		return
	}
	op := s.batch.Next()
	op.Code, op.Text, op.Key, op.Dry = engine.OpCheck, []byte(p.Name), key, true
}

// policyText describes the answer to lookUnderPolicy in one line. For a policy that counts strikes it is their count.
// ok is false if lookUnderPolicy added nothing, if a string has the name, or if nothing counts against the key.
func policyText(srv *Shared, ops []engine.Op, ds []engine.Decision) (text string, ok bool) {
	const at = 1
	if len(ops) <= at || ds[0].ScriptAnswer()[1] != -2 { // -2: there is no string
		return "", false
	}
	d, most := &ds[at], ds[at].Limit
	p := srv.Here.Policies().Get(ops[at].Text)
	if p != nil && len(p.Limits) == 1 && p.Limits[0].Limit.Algorithm == engine.Strike && d.Part != engine.NoPart {
		return strconv.FormatInt(most-d.Remaining, 10), d.ResetMs != 0
	}
	if p != nil && p.ReportNs > 0 {
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
