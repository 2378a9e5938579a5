package wire

import (
	"slices"

	"github.com/weir-project/weir/engine"
)

// FormatOf returns the oldest format that can encode an operation.
func FormatOf(op *engine.Op) byte {
	switch {
	case op.Code == engine.OpBind:
		return 13
	case op.Code == engine.OpBlockEverywhere && engine.BlocksNetwork(op.Key):
		return networks
	case op.Code == engine.OpFollow, op.High && ofBlock(op.Code):
		return 10
	case bound(op):
		return 9
	case len(op.From) > 0, op.Code == engine.OpForgive, attempts(op), op.Code == engine.OpResetPolicy,
		op.Code == engine.OpPolicy && ofForm5(op.Policy), op.Code == engine.OpScript && op.Script.ID >= engine.TextSet:
		return 5
	case op.Code == engine.OpPolicy && (op.Policy.Own || op.Policy.If):
		return 4
	case op.Code == engine.OpPolicy && anyLimit(op.Policy,
		func(l *engine.Limit) bool { return l.Algorithm == engine.Strike }),
		op.Code == engine.OpScript && op.Script.ID >= engine.RedisGCRA:
		return 2
	case op.Code == engine.OpBlockEverywhere:
		return 3
	}
	return Oldest
}

// Preferred returns the format by whose rules an operation should be decided, as soon as every member reads it. The
// format is newer than that of FormatOf if older rules decide the operation otherwise. So a log keeps its old format,
// and a cluster the way back to an older version, until the rules make a difference.
func Preferred(op *engine.Op) byte {
	switch {
	case op.Code == engine.OpPolicy:
		return definitions
	case op.Code == engine.OpBlockEverywhere, op.Code == engine.OpFollow:
		return manyBlocks
	case op.Code == engine.OpBlock, op.High:
		return waits
	}
	return Oldest
}

// RulesOf returns the rules by which a table decides the entries of a log whose newest entry has a format.
func RulesOf(format byte) engine.Rules {
	switch {
	case format >= manyBlocks:
		return engine.RulesManyBlocks
	case format >= networks:
		return engine.RulesNetworks
	case format >= blocks:
		return engine.RulesBlocks
	case format >= definitions:
		return engine.RulesDefinitions
	case format >= waits:
		return engine.RulesWaits
	}
	return engine.RulesOldest
}

// bound reports whether engine.Op.Bind has set what an operation asks for.
func bound(op *engine.Op) bool { return op.Asks != engine.Fingerprint{} }

// Older makes an operation one that every version reads, if there is one that does the same in most cases. A block of
// a key then replaces a block everywhere of the same key, as it did before format 10.
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

// ofForm5 reports whether a policy change has terms that need format 5.
func ofForm5(change *engine.PolicyChange) bool {
	terms := change.Terms
	return terms != nil && (terms.Layout != "" || terms.ReportNs != 0)
}
