package commands

import (
	"fmt"
	"strings"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/resp"
)

// A request with ELSE has alternatives: the first that admits all of its units pays, or with SPLIT several together.

var (
	errElseAlone resp.Error = "ERR ELSE needs a policy and a key"
	errManyElse             = resp.Error(fmt.Sprintf("ERR ELSE may be given at most %d times",
		engine.MaxAlternatives-1))
)

var (
	paramElse = param{"ELSE policy key", "an alternative that pays if those before it do not admit the request, with " +
		"one or more policies and keys; at most 3 times. No policy of a request may be named twice for one key"}
	paramSplit = param{"SPLIT", "let several alternatives pay together. Then no bucket goes into debt (`MAXWAIT`)"}
)

func isElse(word []byte) bool { return limits.Is(word, "ELSE") }

// The options that may follow the pairs of a request. A policy that is called like one of them, or ELSE, must be the
// first of a request.
const (
	checkOptions   = limits.CheckOptions | limits.Split
	reserveOptions = limits.Split | limits.Priority | limits.From | limits.Expire | limits.ID
)

// endsPairs reports whether no pair of a policy and a key begins here. Options of all requests end the pairs of each.
func endsPairs(args [][]byte, options limits.Option) bool {
	return len(args) == 0 || isElse(args[0]) || limits.IsOption(args[0], checkOptions|options)
}

// alternatives reads the alternatives, each after ELSE.
func alternatives(s *Session, op *engine.Op, args [][]byte) (rest [][]byte, err error) {
	for len(args) > 0 && isElse(args[0]) {
		first := 1 + len(op.Also)
		if args, err = morePairs(s, op, args[1:]); err != nil {
			return nil, err
		}
		if op.Else |= 1 << first; len(op.Also) < first {
			return nil, errElseAlone
		}
		if op.Else.Len() > engine.MaxAlternatives {
			return nil, errManyElse
		}
	}
	return args, nil
}

// withElse says what else counts against the bytes of a hold.
func withElse(op *engine.Op) string {
	if op.Else == 0 {
		return ""
	}
	return ", and 24 for each alternative"
}

// A reply to a request with alternatives ends with an array of the policy of each and the units that it paid. Other
// replies, and denials, have no such element.

// elements returns how many elements an array of what was paid adds to a reply.
func elements(paid []engine.Share) int { return min(len(paid), 1) }

// explainPaid returns in words what the alternatives of a check would pay, if it has any, and sets its cost to what the
// limit that the answer describes would take.
func explainPaid(op *engine.Op, d *engine.Decision) []string {
	_, paid := d.Paid()
	if len(paid) == 0 {
		return nil
	}
	op.Cost = paid[op.Else.Of(int(d.Pair))].Units
	_, text, _ := strings.Cut(d.Value, " ")
	return []string{text}
}

func writePaid(s *Session, paid []engine.Share) {
	if len(paid) == 0 {
		return
	}
	s.Array(2 * len(paid))
	for _, p := range paid {
		s.Bulk(p.Policy)
		s.Int(p.Units)
	}
}
