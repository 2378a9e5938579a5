package ledger

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	org  = Pair{"org", "acme"}
	team = Pair{"team", "core"}
)

// story returns the operations one after the other in time, after operations that create their policies.
func story(ops ...Op) []Op {
	set := func(policy string, most int64) Op {
		return Op{Verb: Set, Pairs: []Pair{{Policy: policy}}, Maxima: []int64{most}, Answer: Answer{Left: 1}}
	}
	ops = append([]Op{set("org", 10), set("team", 5)}, ops...)
	for i := range ops {
		if ops[i].CallNs == 0 {
			ops[i].CallNs, ops[i].ReturnNs = int64(10*i+1), int64(10*i+2)
		}
	}
	return ops
}

func (o Op) told(a Answer) Op {
	if o.Verb == Reserve {
		a.Policy = ""
	}
	o.Answer = a
	return o
}

func (o Op) unheard() Op { o.Unknown = true; return o }

// between sets the time of an operation, so that it can overlap others.
func (o Op) between(callNs, returnNs int64) Op {
	o.CallNs, o.ReturnNs = callNs, returnNs
	return o
}

func both(units int64) Op { return Op{Verb: Check, Pairs: []Pair{org, team}, Units: units} }

func look(p Pair, left int64) Op {
	return Op{Verb: Check, Pairs: []Pair{p}}.told(
		Answer{Allowed: 1, Left: left, Limit: map[Pair]int64{org: 10, team: 5}[p], Policy: p.Policy})
}

func held(id string, units int64) Op {
	return Op{Verb: Reserve, ID: id, Pairs: []Pair{org, team}, Units: units}
}

func commit(id string, units int64) Op { return Op{Verb: Commit, ID: id, Units: units} }

func cancel(id string) Op { return Op{Verb: Cancel, ID: id} }

func setTeam(reset bool, maxima ...int64) Op {
	return Op{Verb: Set, Pairs: []Pair{{Policy: "team"}}, Maxima: maxima, Reset: reset}
}

func ofTeam(allowed, left int64) Answer {
	return Answer{Allowed: allowed, Left: left, Limit: 5, Policy: "team"}
}

// TestLinearizable checks which histories of checks, holds and policy changes are linearizable.
func TestLinearizable(t *testing.T) {
	for name, c := range map[string]struct {
		ops []Op
		bad bool
	}{
		"a check of two": {ops: story(both(3).told(ofTeam(1, 2)), look(org, 7), look(team, 2))},
		"only one of them taken": {ops: story(both(3).told(ofTeam(1, 2)), look(org, 10), look(team, 2)),
			bad: true},
		"only the other": {ops: story(both(3).told(ofTeam(1, 2)), look(org, 7), look(team, 5)),
			bad: true},
		"denied":                         {ops: story(both(6).told(ofTeam(0, 5)), look(org, 10), look(team, 5))},
		"denied, and a part taken":       {ops: story(both(6).told(ofTeam(0, 5)), look(org, 4)), bad: true},
		"denied, although it fits":       {ops: story(both(5).told(ofTeam(0, 5))), bad: true},
		"admitted, although it does not": {ops: story(both(6).told(ofTeam(1, 0))), bad: true},
		"the name of the other": {ops: story(
			both(3).told(Answer{Allowed: 1, Left: 2, Limit: 5, Policy: "org"})), bad: true},
		"an unknown policy": {ops: story(Op{Verb: Check, Units: 1, Pairs: []Pair{org, {"none", "k"}}}.told(
			Answer{Status: NoPolicy}), look(org, 10))},
		"unknown: all":     {ops: story(both(3).unheard(), look(org, 7), look(team, 2))},
		"unknown: nothing": {ops: story(both(3).unheard(), look(org, 10), look(team, 5))},
		"unknown: a part":  {ops: story(both(3).unheard(), look(org, 7), look(team, 5)), bad: true},
		"unknown: later":   {ops: story(both(3).unheard(), look(org, 10), look(team, 2), look(org, 7))},

		"held and settled": {ops: story(held("a", 4).told(ofTeam(1, 1)), look(team, 1),
			commit("a", 1).told(Answer{Left: 4}), look(org, 9), look(team, 4))},
		"given back twice": {ops: story(held("a", 4).told(ofTeam(1, 1)), commit("a", 3).told(Answer{Left: 2}),
			look(org, 8)), bad: true},
		"not given back": {ops: story(held("a", 4).told(ofTeam(1, 1)), commit("a", 1).told(Answer{Left: 1})),
			bad: true},
		"settled again": {ops: story(held("a", 4).told(ofTeam(1, 1)), commit("a", 1).told(Answer{Left: 4}),
			commit("a", 1).told(Answer{Left: 4}), look(org, 9))},
		"settled again, and taken": {ops: story(held("a", 4).told(ofTeam(1, 1)), commit("a", 1).told(Answer{Left: 4}),
			commit("a", 1).told(Answer{Left: 3})), bad: true},
		"settled otherwise": {ops: story(held("a", 4).told(ofTeam(1, 1)), commit("a", 1).told(Answer{Left: 4}),
			commit("a", 2).told(Answer{Status: OtherTerms}))},
		"used more than there is": {ops: story(held("a", 4).told(ofTeam(1, 1)), commit("a", 7).told(Answer{}),
			look(org, 3), Op{Verb: Check, Pairs: []Pair{team}}.told(ofTeam(0, 0)))},
		"cancelled": {ops: story(held("a", 4).told(ofTeam(1, 1)), cancel("a").told(Answer{Allowed: 1}),
			cancel("a").told(Answer{Allowed: 1}), look(team, 5))},
		"cancelled, in one of them": {ops: story(held("a", 4).told(ofTeam(1, 1)), cancel("a").told(Answer{Allowed: 1}),
			look(org, 10), look(team, 1)), bad: true},
		"cancelled, then settled": {ops: story(held("a", 4).told(ofTeam(1, 1)), cancel("a").told(Answer{Allowed: 1}),
			commit("a", 2).told(Answer{Left: 3}), cancel("a").told(Answer{}))},
		"a hold that is repeated": {ops: story(held("a", 2).told(ofTeam(1, 3)), held("a", 2).told(ofTeam(1, 3)),
			look(team, 3))},
		"and made twice": {ops: story(held("a", 2).told(ofTeam(1, 3)), held("a", 2).told(ofTeam(1, 1))),
			bad: true},
		"a hold that is forgotten": {ops: story(held("a", 2).told(ofTeam(1, 3)),
			commit("a", 2).told(Answer{Status: NoHold})), bad: true},
		"a denied hold": {ops: story(held("a", 6).told(ofTeam(0, 5)), commit("a", 2).told(Answer{Status: NoHold}),
			cancel("a").told(Answer{}))},

		"more room": {ops: story(both(3).told(ofTeam(1, 2)), setTeam(false, 8, 9).told(Answer{Left: 2}),
			both(5).told(Answer{Allowed: 1, Left: 0, Limit: 8, Policy: "team"}))},
		"half of a change": {ops: story(setTeam(false, 8, 7).told(Answer{Left: 2}),
			both(1).told(Answer{Allowed: 1, Left: 7, Limit: 8, Policy: "team"})), bad: true},
		"a change that is undone": {ops: story(setTeam(false, 8).told(Answer{Left: 2}), both(1).told(ofTeam(1, 4))),
			bad: true},
		"during the change": {ops: story(setTeam(false, 8).told(Answer{Left: 2}).between(100, 200),
			both(1).told(ofTeam(1, 4)).between(110, 120),
			both(1).told(Answer{Allowed: 1, Left: 6, Limit: 8, Policy: "team"}).between(130, 140))},
		"there and back": {ops: story(setTeam(false, 8).told(Answer{Left: 2}).between(100, 200),
			both(1).told(Answer{Allowed: 1, Left: 7, Limit: 8, Policy: "team"}).between(110, 120),
			both(1).told(ofTeam(1, 3)).between(130, 140)), bad: true},
		"usage reset": {ops: story(both(3).told(ofTeam(1, 2)), setTeam(true, 5).told(Answer{Left: 1}),
			look(team, 5), look(org, 7))},
		"usage reset, not kept": {ops: story(both(3).told(ofTeam(1, 2)), setTeam(false, 8).told(Answer{Left: 2}),
			look(org, 10)), bad: true},
		"usage kept, not reset": {ops: story(both(3).told(ofTeam(1, 2)), setTeam(true, 5).told(Answer{Left: 1}),
			look(team, 2)), bad: true},
		"deleted": {ops: story(setTeam(false).told(Answer{Allowed: 1}),
			both(1).told(Answer{Status: NoPolicy}), setTeam(false).told(Answer{}))},
		"deleted, and made again": {ops: story(both(3).told(ofTeam(1, 2)), setTeam(false).told(Answer{Allowed: 1}),
			setTeam(false, 5).told(Answer{Left: 1}), look(team, 5))},
	} {
		t.Run(name, func(t *testing.T) {
			err := Linearizable(c.ops)
			if c.bad {
				require.ErrorIs(t, err, ErrNotLinearizable)
				return
			}
			require.NoError(t, err)
		})
	}
}

// TestLinearizableByGroup checks the promise about policy changes in a cluster with several Raft groups: each group
// sees whole versions, in their order, between the call of a change and its answer.
func TestLinearizableByGroup(t *testing.T) {
	foo, bar := Pair{"team", "{foo}:0"}, Pair{"team", "{bar}:0"}
	sees := func(key Pair, limit, left, from int64) Op {
		return Op{Verb: Check, Pairs: []Pair{key}}.told(
			Answer{Allowed: 1, Left: left, Limit: limit, Policy: "team"}).between(from, from+1)
	}
	set := func(version, from, to int64, reset bool, maxima ...int64) Op {
		return setTeam(reset, maxima...).told(Answer{Left: version}).between(from, to)
	}
	first := set(1, 0, 10, false, 5, 90)
	second := set(2, 100, 200, false, 80, 7)
	take := sees(foo, 5, 3, 20)
	take.Units = 2
	for name, c := range map[string]struct {
		ops []Op
		bad bool
		// apart is set if the history is not linearizable as a whole, and the promise is kept.
		apart bool
	}{
		"at once":     {ops: []Op{first, second, sees(foo, 5, 5, 50), sees(foo, 7, 7, 300), sees(bar, 7, 7, 300)}},
		"one by one":  {ops: []Op{first, second, sees(foo, 7, 7, 110), sees(bar, 5, 5, 120), sees(bar, 7, 7, 130)}, apart: true},
		"first later": {ops: []Op{first, second, sees(bar, 7, 7, 110), sees(foo, 5, 5, 120)}, apart: true},
		"one group is behind after the answer": {ops: []Op{first, second, sees(foo, 7, 7, 110), sees(bar, 5, 5, 210)},
			bad: true},
		"one group goes back": {ops: []Op{first, second, sees(foo, 7, 7, 110), sees(foo, 5, 5, 120)}, bad: true},
		"one group is early":  {ops: []Op{first, second, sees(bar, 7, 7, 90)}, bad: true},
		"half of a change":    {ops: []Op{first, second, sees(bar, 80, 80, 110)}, bad: true},
		"the other half":      {ops: []Op{first, second, sees(bar, 90, 90, 110)}, bad: true},
		"in the wrong order": {ops: []Op{first, second, set(3, 210, 220, false, 9), sees(bar, 9, 9, 230),
			sees(bar, 7, 7, 240)}, bad: true},
		"a change that one group never makes": {ops: []Op{first, second, sees(foo, 7, 7, 300), sees(bar, 5, 5, 300)},
			bad: true},
		"a wrong version":  {ops: []Op{first, set(3, 100, 200, false, 80, 7)}, bad: true},
		"a policy is gone": {ops: []Op{first, sees(foo, 0, 0, 20).told(Answer{Status: NoPolicy}).between(20, 21)}, bad: true},
		"unknown": {ops: []Op{first, second.unheard(), sees(foo, 7, 7, 300), sees(bar, 5, 5, 310),
			sees(bar, 7, 7, 400)}, apart: true},
		"unknown, and back": {ops: []Op{first, second.unheard(), sees(foo, 7, 7, 300), sees(foo, 5, 5, 400)}, bad: true},
		"a reset":           {ops: []Op{first, take, set(2, 100, 200, true, 80, 7), sees(foo, 7, 7, 300)}},
		"no reset":          {ops: []Op{first, take, set(2, 100, 200, true, 80, 7), sees(foo, 7, 5, 300)}, bad: true},
		"a repair without the reset": {ops: []Op{first, take, set(2, 100, 200, true, 80, 7).unheard(),
			sees(foo, 7, 5, 300), sees(foo, 7, 7, 400)}, apart: true},
		"units lost in one group": {ops: []Op{first, take, sees(foo, 5, 5, 30)}, bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			err := LinearizableByGroup(c.ops)
			if c.bad {
				require.ErrorIs(t, err, ErrNotLinearizable)
				return
			}
			require.NoError(t, err)
			if err = Linearizable(c.ops); c.apart {
				require.ErrorIs(t, err, ErrNotLinearizable)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// TestOneSetter checks that the changes of a trail do not overlap, and that none follows one with an unknown outcome.
func TestOneSetter(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	traffic := policySwaps()
	traffic.OneSetter = true
	trail := (&Ring{Traffic: traffic}).Next()
	next := func() Op {
		for range 1000 {
			if op := traffic.Draw(r, trail); op.Verb == Set {
				return op
			}
		}
		return Op{}
	}
	for range 3 {
		op := next()
		require.Equal(t, Set, op.Verb)
		require.Zero(t, next(), "a second change must wait for the first one")
		trail.Ended(op)
	}
	op := next()
	op.Unknown = true
	trail.Ended(op)
	require.Zero(t, next())
}

// TestExplained checks that final counts are accepted only if some outcome of the unknown operations leads to them.
func TestExplained(t *testing.T) {
	ops := []Op{
		both(1).told(ofTeam(1, 4)),
		both(9).told(ofTeam(0, 4)),
		held("a", 2).told(ofTeam(1, 2)), commit("a", 1).told(Answer{Left: 3}), commit("a", 1).unheard(),
		held("b", 2).told(ofTeam(1, 1)), cancel("b").unheard(),
		held("c", 2).told(ofTeam(1, 1)), // this hold expires by itself
		both(2).unheard(),
	}
	for name, c := range map[string]struct {
		org, team int64 // left
		bad       bool
	}{
		"the unknown one was not taken": {8, 3, false},
		"it was":                        {6, 1, false},
		"a part of it was":              {6, 3, true},
		"the other part":                {8, 1, true},
		"a hold is still there":         {4, 0, true},
		"a commit was forgotten":        {9, 4, true},
		"a commit was counted twice":    {7, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := Explained(story(ops...),
				map[Pair]Answer{org: {Left: c.org, Limit: 10}, team: {Left: c.team, Limit: 5}})
			if c.bad {
				require.ErrorIs(t, err, ErrUnexplained)
				return
			}
			require.NoError(t, err)
		})
	}
	late := []Op{both(4).told(ofTeam(1, 1)), held("a", 1).told(ofTeam(1, 0)), commit("a", 3).told(Answer{})}
	require.NoError(t, Explained(story(late...), map[Pair]Answer{org: {Left: 3, Limit: 10}, team: {Left: 0, Limit: 5}}),
		"a commit beyond the limit leaves nothing")
}

// TestPoliciesThatAreGoneExplainNothing checks that a deleted policy or a different limit explains no count.
func TestPoliciesThatAreGoneExplainNothing(t *testing.T) {
	ops := []Op{both(3).told(ofTeam(1, 2))}
	left := func(ofOrg Answer) map[Pair]Answer { return map[Pair]Answer{org: ofOrg, team: {Left: 2, Limit: 5}} }
	require.NoError(t, Explained(story(ops...), left(Answer{Left: 7, Limit: 10})))
	for name, answer := range map[string]Answer{
		"gone in the end":       {Status: NoPolicy},
		"another limit":         {Left: 17, Limit: 20},
		"a limit of nothing":    {},
		"what is no answer yet": {Status: NoHold, Left: 7, Limit: 10},
	} {
		require.ErrorIs(t, Explained(story(ops...), left(answer)), ErrUnexplained, name)
	}
	for _, gone := range []Op{both(1), held("a", 1)} {
		require.ErrorIs(t, Explained(story(append(ops, gone.told(Answer{Status: NoPolicy}))...),
			left(Answer{Left: 7, Limit: 10})), ErrUnexplained)
	}
}

// TestOneCommitSettlesAHold checks that only one of several commits can have settled the same hold.
func TestOneCommitSettlesAHold(t *testing.T) {
	ops := story(held("a", 2).told(ofTeam(1, 3)), commit("a", 1).unheard(), commit("a", 2).unheard())
	for taken := int64(0); taken <= 5; taken++ {
		err := Explained(ops, map[Pair]Answer{org: {Left: 10 - taken, Limit: 10}, team: {Left: 5 - taken, Limit: 5}})
		if taken <= 2 {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrUnexplained)
	}
}

// TestOverHeld checks that holds which are certainly active never exceed the limit, and uncertain ones count for
// nothing.
func TestOverHeld(t *testing.T) {
	made := func(callNs, units int64) Op {
		op := held("a", units).told(ofTeam(1, 0)).between(callNs, callNs+1)
		op.TTLNs = 1000
		return op
	}
	taken := func(atNs, units int64) Op { return both(units).told(ofTeam(1, 0)).between(atNs, atNs+1) }
	settled := func(atNs, units int64) Op { return commit("a", units).between(atNs, atNs+1) }
	for name, c := range map[string]struct {
		ops []Op
		bad bool
	}{
		"all of it":               {ops: []Op{made(0, 3), taken(10, 2)}},
		"more":                    {ops: []Op{made(0, 3), taken(10, 3)}, bad: true},
		"a repeated hold is one":  {ops: []Op{made(0, 3), made(6, 3), taken(10, 2)}},
		"when the hold has ended": {ops: []Op{made(0, 3), taken(1001, 5)}},
		"when it may have ended":  {ops: []Op{made(0, 3), taken(999, 5)}},
		"what was not used":       {ops: []Op{made(0, 3), settled(5, 1), taken(10, 4)}},
		"what was used":           {ops: []Op{made(0, 3), settled(5, 1), taken(10, 5)}, bad: true},
		"what was perhaps used":   {ops: []Op{made(0, 3), settled(5, 1).unheard(), taken(10, 5)}},
		"what was cancelled": {ops: []Op{made(0, 3), cancel("a").told(Answer{Allowed: 1}).between(5, 6),
			taken(10, 5)}},
		"what was cancelled, then used": {ops: []Op{made(0, 3), cancel("a").unheard().between(5, 6),
			settled(7, 3), taken(10, 5)}},
		"more was used than was held": {ops: []Op{made(0, 3), settled(5, 9)}},
	} {
		t.Run(name, func(t *testing.T) {
			err := OverHeld(5, SpansOf(team, c.ops, 0.01))
			if c.bad {
				require.ErrorIs(t, err, ErrOverHeld)
				return
			}
			require.NoError(t, err)
		})
	}
}

// TestRepeatedCommandsMayBecomeUnknown checks which answers become unknown when a command may have run twice. A commit
// that was answered "no hold" may still settle a later hold. A commit with any other answer keeps that answer. What was
// denied may be admitted by a copy that comes later.
func TestRepeatedCommandsMayBecomeUnknown(t *testing.T) {
	left := map[Pair]Answer{org: {Left: 7, Limit: 10}, team: {Left: 2, Limit: 5}}
	tried := commit("h", 3).told(Answer{Status: NoHold})
	made := held("h", 3).told(Answer{Allowed: 1, Left: 2, Limit: 5})
	require.ErrorIs(t, Explained(story(tried, made), left), ErrUnexplained)
	tried.Doubt()
	require.NoError(t, Explained(story(tried, made), left))

	for _, op := range []Op{made, both(3).told(Answer{Allowed: 1, Left: 2}), commit("h", 3).told(Answer{Left: 2}),
		commit("h", 3).told(Answer{Status: OtherTerms})} {
		op.Doubt()
		require.False(t, op.Unknown, "%v", op)
	}
	for _, denied := range []Op{held("h", 3).told(Answer{Left: 2}), both(3).told(Answer{Left: 2})} {
		denied.Doubt()
		require.True(t, denied.Unknown, "%v", denied)
	}
}

// TestOverHeldSpans checks the bound on spans, as of leases.
func TestOverHeldSpans(t *testing.T) {
	span := func(from, till int64) Span { return Span{FromNs: from, TillNs: till, Units: 1} }
	for name, c := range map[string]struct {
		spans []Span
		want  error
	}{
		"one after the other":       {spans: []Span{span(0, 5), span(5, 9), span(9, 11)}},
		"two at once":               {spans: []Span{span(0, 5), span(1, 9), span(5, 11)}},
		"three at once":             {spans: []Span{span(0, 5), span(1, 9), span(4, 11)}, want: ErrOverHeld},
		"answered after it ran out": {spans: []Span{span(0, 5), span(1, 9), span(4, 3)}},
	} {
		t.Run(name, func(t *testing.T) { requireErr(t, c.want, OverHeld(2, c.spans)) })
	}
}
