package service

import (
	"strings"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/server/resp"
)

// idUsed returns the error reply for an operation whose ID was used for another request.
func idUsed(op *engine.Op, d *engine.Decision) error {
	code, algorithm, differs := d.FirstUse()
	first := commandOf(code, algorithm)
	if first == commandOf(op.Code, op.Limit.Algorithm) {
		first += " with " + differentIn(op.Code, differs)
	}
	key := ""
	if op.Code == engine.OpReset || op.Code == engine.OpResetPolicy { // other keys of the same RL.RESET may be reset
		key = " on " + quote.Text(op.Key)
	}
	return resp.Error("IDUSED the ID " + quote.Text(op.ID) + " was used" + key + " for " + first +
		", nothing was done" + key + ": repeat that request as it was, or send this one with an ID of its own")
}

// commandOf returns the command that makes an operation. A command with an ID has one of these operations.
func commandOf(code engine.OpCode, a engine.Algorithm) string {
	switch code {
	case engine.OpTake:
		return decisionCommands[a]
	case engine.OpResetPolicy:
		return "RL.RESET"
	case engine.OpBlockEverywhere:
		return "RL.BLOCK EVERYWHERE"
	}
	return otherCommands[code]
}

var decisionCommands = map[engine.Algorithm]string{
	engine.TokenBucket: "RL.TOKENBUCKET", engine.LeakyBucket: "RL.LEAKYBUCKET", engine.FixedWindow: "RL.FIXED",
	engine.SlidingLog: "RL.SLIDING", engine.SlidingCounter: "RL.SLIDINGCOUNTER", engine.Concurrency: "RL.ACQUIRE",
	engine.Strike: "RL.STRIKE",
}

var otherCommands = map[engine.OpCode]string{
	engine.OpCheck: "RL.CHECK", engine.OpRelease: "RL.RELEASE", engine.OpRenew: "RL.RENEW",
	engine.OpRefund: "RL.REFUND", engine.OpReset: "RL.RESET", engine.OpForgive: "RL.FORGIVE",
	engine.OpBlock: "RL.BLOCK", engine.OpUnblock: "RL.UNBLOCK", engine.OpExtend: "RL.EXTEND",
}

// differentIn names the parts in which two requests of one command differ.
func differentIn(code engine.OpCode, differs engine.Difference) string {
	words := []struct {
		part engine.Difference
		word string
	}{
		{engine.OtherPairs, "another policy or key"}, {engine.OtherLimit, "another limit"},
		{engine.OtherCost, "another cost"}, {engine.OtherText, "another holder"}, {engine.OtherTime, "another ttl"},
		{engine.OtherOptions, "other options"},
	}
	var named []string
	for _, w := range words {
		if differs&w.part == 0 {
			continue
		}
		switch block := code == engine.OpBlock || code == engine.OpBlockEverywhere; {
		case block && w.part == engine.OtherText:
			w.word = "another reason"
		case block && w.part == engine.OtherTime:
			w.word = "another duration"
		case (code == engine.OpRefund || code == engine.OpExtend) && w.part == engine.OtherCost:
			w.word = "another n"
		}
		named = append(named, w.word)
	}
	if len(named) == 0 { // one byte tells a part, so two different parts may look alike
		return "other arguments"
	}
	return strings.Join(named, " and ")
}
