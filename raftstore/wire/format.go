package wire

import (
	"slices"

	"github.com/weir-project/weir/engine"
)

// FormatOf is the oldest format that has an operation.
func FormatOf(op *engine.Op) byte {
	switch {
	case op.Code == engine.OpPolicy && (op.Policy.Own || op.Policy.If):
		return 4
	case op.Code == engine.OpPolicy && strikes(op.Policy), op.Code == engine.OpScript && op.Script.ID >= engine.RedisGCRA:
		return 2
	case op.Code == engine.OpBlockEverywhere:
		return 3
	}
	return Oldest
}

// strikes reports whether a change brings limits that count strikes.
func strikes(change *engine.PolicyChange) bool {
	any := func(limits []engine.PolicyLimit) bool {
		return slices.ContainsFunc(limits, func(l engine.PolicyLimit) bool { return l.Limit.Algorithm == engine.Strike })
	}
	terms := change.Terms
	return terms != nil && (any(terms.Limits) || slices.ContainsFunc(terms.Overrides, func(o engine.Override) bool { return any(o.Limits) }))
}
