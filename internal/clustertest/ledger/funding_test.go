package ledger

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBudgetsAreLinearizable checks which histories of holds with alternatives, extensions and reports of what was used
// are linearizable. The team pays first, and the org what does not fit.
func TestBudgetsAreLinearizable(t *testing.T) {
	split := Op{Verb: Reserve, ID: "a", Pairs: []Pair{team, org}, Else: []int{1}, Split: true, Units: 8}
	whole := split
	whole.Split = false
	extend := func(seq, units int64) Op { return Op{Verb: Extend, ID: "a", Seq: seq, Units: units} }
	paid := func(left int64, text string) Answer { return Answer{Allowed: 1, Left: left, Limit: 10, Paid: text} }
	report := func(units int64) Op {
		op := commit("a", units)
		op.Keep = true
		return op
	}
	// The hold took 5 units of the team and 5 of the org.
	grown := []Op{split.told(paid(7, "8 team 5 org 3")), extend(1, 2).told(paid(5, "10 team 5 org 5"))}
	// Of these 5 units of the team and 1 of the org were used.
	used := append(grown[:2:2], report(6).told(Answer{Left: 5}))
	cancelled := append(used[:3:3], cancel("a").told(Answer{Allowed: 1}))
	none := look(team, 0)
	for name, c := range map[string]struct {
		begins []Op
		ops    []Op
		bad    bool
	}{
		"split":                {grown, []Op{look(org, 5), none}, false},
		"split otherwise":      {nil, []Op{split.told(paid(6, "8 team 4 org 4"))}, true},
		"not split":            {nil, []Op{whole.told(paid(2, "8 team 0 org 8")), look(team, 5)}, false},
		"split without a word": {nil, []Op{whole.told(paid(7, "8 team 5 org 3"))}, true},
		"extended again":       {grown, []Op{extend(1, 2).told(paid(5, "10 team 5 org 5")), look(org, 5)}, false},
		"and taken again":      {grown, []Op{extend(1, 2).told(paid(5, "10 team 5 org 5")), look(org, 3)}, true},
		"extended otherwise":   {grown, []Op{extend(1, 3).told(Answer{Status: OtherTerms})}, false},
		"denied": {grown, []Op{extend(2, 9).told(Answer{Limit: 5, Paid: "10 team 5 org 5"}), extend(3, 1).told(
			Answer{Status: OutOfOrder, Limit: 2}), look(org, 5)}, false},
		"denied, and a part taken": {grown, []Op{extend(2, 9).told(Answer{Limit: 5, Paid: "10 team 5 org 5"}),
			look(org, 0)}, true},
		"reported":             {used, []Op{report(5).told(Answer{Status: OtherTerms}), look(org, 5), none}, false},
		"reported more":        {used, []Op{report(12).told(Answer{Left: 3}), look(org, 3)}, false},
		"used and given back":  {cancelled, []Op{look(org, 9), none}, false},
		"given to the team":    {cancelled, []Op{look(team, 4)}, true},
		"the used given back":  {cancelled, []Op{look(org, 10)}, true},
		"used, then settled":   {used, []Op{commit("a", 7).told(Answer{Left: 8}), look(org, 8), none}, false},
		"settled late":         {cancelled, []Op{commit("a", 8).told(Answer{Left: 7}), none}, false},
		"settled late, in all": {cancelled, []Op{commit("a", 8).told(Answer{Left: 1})}, true},
		"ended": {cancelled, []Op{extend(2, 1).told(Answer{Status: HoldEnded}),
			report(9).told(Answer{Status: HoldEnded}), extend(1, 2).told(paid(5, "10 team 5 org 5"))}, false},
		"an extension of nothing": {nil, []Op{extend(1, 1).told(Answer{Status: NoHold})}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := Linearizable(story(slices.Concat(c.begins, c.ops)...))
			if c.bad {
				require.ErrorIs(t, err, ErrNotLinearizable)
				return
			}
			require.NoError(t, err)
		})
	}
}
