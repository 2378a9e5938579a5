package client

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weir-project/weir/engine"
)

// Share is what one alternative of a Request pays. Policy is the first policy of the alternative.
type Share struct {
	Policy string
	Units  int64
}

// Paid returns what each alternative of an admitted request pays, in their order: first Rule with Also, then those of
// Request.Else. It returns none for a request without Else, and if weir did not decide and WhenDown is not Local.
func (d *Decision) Paid() []Share {
	_, shares := (&engine.Decision{Value: d.paid}).Paid()
	paid := make([]Share, 0, len(shares))
	for _, s := range shares {
		paid = append(paid, Share(s))
	}
	return paid
}

// others returns the pairs of a request besides Rule and Key.
func (q *Request) others() []Pair {
	if len(q.Else) == 0 {
		return q.Also
	}
	return slices.Concat(append([][]Pair{q.Also}, q.Else...)...)
}

// wrongElse describes what is wrong with the alternatives of a request, or is empty.
func (q *Request) wrongElse() string {
	switch {
	case len(q.Else) == 0 && !q.Split:
		return ""
	case len(q.Else) == 0:
		return "Split requires Else"
	case q.Rule.policy == "":
		return "Else requires a policy as the rule"
	case len(q.Else) >= engine.MaxAlternatives:
		return "Else can have at most 3 alternatives"
	case slices.ContainsFunc(q.Else, func(pairs []Pair) bool { return len(pairs) == 0 }):
		return "an alternative in Else must have a policy and a key"
	}
	return ""
}

// alternatives appends the alternatives to a command.
func (q *Request) alternatives(args []any) []any {
	for _, pairs := range q.Else {
		args = append(args, "ELSE")
		for _, p := range pairs {
			args = append(args, p.Policy, p.Key)
		}
	}
	if q.Split {
		args = append(args, "SPLIT")
	}
	return args
}

// elseOf returns the alternatives of a request for the engine.
func (q *Request) elseOf() (a engine.Alternatives) {
	first := 1 + len(q.Also)
	for _, pairs := range q.Else {
		a |= 1 << first
		first += len(pairs)
	}
	if q.Split {
		a |= engine.Split
	}
	return a
}

// paidIn returns what was paid, if it is the last element of a reply.
func paidIn(reply []any) string {
	paid, ok := reply[len(reply)-1].([]any)
	if !ok {
		return ""
	}
	words := []string{"0"} // the sum, which Paid does not need
	for i := 0; i+1 < len(paid); i += 2 {
		policy, isText := paid[i].(string)
		units, isNumber := paid[i+1].(int64)
		if !isText || !isNumber {
			return ""
		}
		words = append(words, policy, strconv.FormatInt(units, 10))
	}
	return strings.Join(words, " ")
}
