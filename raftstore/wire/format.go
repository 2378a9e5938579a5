package wire

import (
	"slices"

	"github.com/weir-project/weir/engine"
)

// FormatOf returns the oldest format that can encode an operation.
func FormatOf(op *engine.Op) byte {
	switch {
	case op.Code == engine.OpExtend, op.Code == engine.OpEnd, op.Code == engine.OpCharge, op.Keep, op.Else != 0,
		op.Code == engine.OpPolicy && tells(op.Policy),
		op.StoredIn() != 0, op.Code == engine.OpFlush,
		op.Code == engine.OpScript && op.Script.ID >= engine.UpstashSlide:
		return growing
	case op.Code == engine.OpBind:
		return binding
	case bound(op), len(op.From) > 0, attempts(op), op.High && ofBlock(op.Code),
		op.Code == engine.OpForgive, op.Code == engine.OpResetPolicy, op.Code == engine.OpFollow,
		op.Code == engine.OpPolicy && reported(op.Policy), op.Code == engine.OpScript && op.Script.ID >= engine.TextSet,
		op.Code == engine.OpBlockEverywhere && engine.BlocksNetwork(op.Key):
		return added
	}
	return Oldest
}

// Preferred returns the format by whose rules an operation should be decided, as soon as every member reads it. The
// format is newer than that of FormatOf if older rules decide the operation otherwise. So a log keeps its old format,
// and a cluster the way back to an older version, until the rules make a difference.
func Preferred(op *engine.Op) byte {
	switch {
	case op.Code == engine.OpReserve:
		return growing
	case op.Code == engine.OpBlockEverywhere, op.Code == engine.OpFollow:
		return manyBlocks
	case op.High, op.Code == engine.OpPolicy, op.Code == engine.OpBlock:
		return added
	}
	return Oldest
}

// RulesOf returns the rules by which a table decides the entries of a log whose newest entry has a format. Unreleased
// builds after 0.1.0 wrote formats 5 to 10.
func RulesOf(format byte) engine.Rules {
	switch {
	case format >= growing:
		return engine.RulesManyHolds
	case format >= manyBlocks:
		return engine.RulesManyBlocks
	case format >= added:
		return engine.RulesNetworks
	case format >= 10:
		return engine.RulesBlocks
	case format >= 8:
		return engine.RulesDefinitions
	case format >= 7:
		return engine.RulesWaits
	}
	return engine.RulesOldest
}

// keepFlag returns the flag of Keep for an operation of a code, or 0 if it has none.
func keepFlag(c engine.OpCode) byte {
	switch c {
	case engine.OpReserve, engine.OpCommit:
		return flagPartial
	case engine.OpBlock:
		return flagDry
	}
	return 0
}

// bound reports whether engine.Op.Bind has set what an operation asks for.
func bound(op *engine.Op) bool { return op.Asks != engine.Fingerprint{} }

// Older makes an operation one that every version reads, if there is one that does the same in most cases. A block of
// a key then replaces a block everywhere of the same key, as it did in version 0.1.0.
func Older(op *engine.Op) bool {
	if !op.High || !ofBlock(op.Code) {
		return false
	}
	op.High = false
	return true
}

func ofBlock(c engine.OpCode) bool {
	return c == engine.OpBlock || c == engine.OpUnblock || c == engine.OpBlockEverywhere
}

// attempts reports whether an operation has a strike limit with a mode or a delay.
func attempts(op *engine.Op) bool {
	brings := func(l *engine.Limit) bool {
		return l.Algorithm == engine.Strike && (l.Strikes != 0 || l.Steps.Delays())
	}
	return op.Code == engine.OpTake && brings(&op.Limit) || op.Code == engine.OpPolicy && anyLimit(op.Policy, brings)
}

// anyLimit reports whether is holds for any limit of a policy change.
func anyLimit(change *engine.PolicyChange, is func(*engine.Limit) bool) bool {
	in := func(limits []engine.PolicyLimit) bool {
		return slices.ContainsFunc(limits, func(l engine.PolicyLimit) bool { return is(&l.Limit) })
	}
	terms := change.Terms
	return terms != nil && (in(terms.Limits) || slices.ContainsFunc(terms.Overrides,
		func(o engine.Override) bool { return in(o.Limits) }))
}

// tells reports whether a policy change has NOTIFY or RECORD.
func tells(change *engine.PolicyChange) bool { return change.Terms != nil && change.Terms.Tells() }

// reported reports whether a policy change has a layout or REPORT.
func reported(change *engine.PolicyChange) bool {
	terms := change.Terms
	return terms != nil && (terms.Layout != "" || terms.ReportNs != 0)
}
