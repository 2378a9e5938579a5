package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// tellTerms are limits of 100 units with thresholds at 50 % and 80 %.
var tellTerms = map[string]Notify{
	"spent":   {Max: 100, Shares: []int64{50, 80}},
	"renewed": {Max: 100, Shares: []int64{50, 80}, Ends: true},
	"held":    {Max: 100, Shares: []int64{50, 80}, Returns: true},
}

func threshold(policy, id string, share, amount, used int64) Event {
	return Event{Kind: ThresholdEvent, Pair: Pair{policy, "k"}, ID: id, Share: share, Amount: amount, Used: used,
		Limit: 100}
}

func taking(policy, id string, units, used int64) Taking {
	return Taking{Pair: Pair{policy, "k"}, ID: id, Units: units, Used: used}
}

func TestTold(t *testing.T) {
	certain := []Taking{taking("spent", "a", 40, 40), taking("spent", "b", 50, 90)}
	both := []Event{threshold("spent", "b", 50, 50, 90), threshold("spent", "b", 80, 50, 90)}
	renewed := []Taking{taking("renewed", "a", 60, 60), taking("renewed", "b", 55, 55), taking("renewed", "c", 5, 60)}
	perhaps := Taking{Pair: Pair{"spent", "k"}, ID: "x", Units: 60, Unknown: true}
	ended := Event{Kind: SettledEvent, Pair: Pair{"held", "k"}, ID: "h", Amount: 7}
	end := []Settling{{Pair: Pair{"held", "k"}, ID: "h", Cost: 7}}
	for name, c := range map[string]struct {
		takings   []Taking
		settlings []Settling
		events    []Event
		want      error
	}{
		"right":                 {takings: certain, events: both},
		"another kind":          {events: []Event{{Kind: "expired"}}},
		"one is missing":        {takings: certain, events: both[1:], want: ErrNotTold},
		"one comes twice":       {takings: certain, events: append(both[:2:2], both[1]), want: ErrToldAgain},
		"none took":             {events: both, want: ErrToldFalsely},
		"another amount":        {takings: certain, events: []Event{both[0], threshold("spent", "b", 80, 45, 90)}, want: ErrToldFalsely},
		"another usage":         {takings: certain, events: []Event{both[0], threshold("spent", "b", 80, 50, 91)}, want: ErrToldFalsely},
		"not reached":           {takings: certain[:1], events: []Event{threshold("spent", "a", 50, 40, 40)}, want: ErrToldFalsely},
		"reached before":        {takings: append(certain[:2:2], taking("spent", "c", 5, 95)), events: []Event{threshold("spent", "c", 50, 5, 95), both[1]}, want: ErrToldFalsely},
		"no such threshold":     {takings: certain, events: append(both[:2:2], threshold("spent", "b", 60, 50, 90)), want: ErrToldFalsely},
		"perhaps, and not told": {takings: []Taking{perhaps}},
		"perhaps, and told":     {takings: []Taking{perhaps}, events: []Event{threshold("spent", "x", 50, 55, 60)}},
		"more than perhaps":     {takings: []Taking{perhaps}, events: []Event{threshold("spent", "x", 50, 61, 61)}, want: ErrToldFalsely},
		"a read shows it":       {takings: []Taking{perhaps, taking("spent", "", 0, 60)}, want: ErrNotTold},
		"in two windows":        {takings: renewed, events: []Event{threshold("renewed", "a", 50, 60, 60), threshold("renewed", "b", 50, 55, 55)}},
		"in the first alone":    {takings: renewed, events: []Event{threshold("renewed", "a", 50, 60, 60)}, want: ErrNotTold},
		"twice in a window":     {takings: renewed, events: []Event{threshold("renewed", "a", 50, 60, 60), threshold("renewed", "b", 50, 55, 55), threshold("renewed", "c", 50, 5, 60)}, want: ErrToldFalsely},
		"after units came back": {takings: []Taking{taking("held", "h", 60, 60), taking("held", "i", 60, 61)}, events: []Event{threshold("held", "h", 50, 60, 60)}},
		"again after a refund":  {takings: []Taking{taking("held", "h", 60, 60), taking("held", "i", 60, 61)}, events: []Event{threshold("held", "h", 50, 60, 60), threshold("held", "i", 50, 60, 61)}, want: ErrToldAgain},
		"settled":               {settlings: end, events: []Event{ended}},
		"settled twice":         {settlings: end, events: []Event{ended, ended}, want: ErrToldAgain},
		"not settled":           {settlings: end, want: ErrNotTold},
		"settled by nobody":     {events: []Event{ended}, want: ErrToldFalsely},
		"settled otherwise":     {settlings: []Settling{{Pair: end[0].Pair, ID: "h", Cost: 8}}, events: []Event{ended}, want: ErrToldFalsely},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Told(tellTerms, c.takings, c.settlings, c.events)
			require.ErrorIs(t, err, c.want)
		})
	}
}

func TestEventLog(t *testing.T) {
	var l EventLog
	require.NoError(t, l.Add("r", 0, []Event{{Cursor: 1}, {Cursor: 2}}))
	require.NoError(t, l.Add("s", 1, []Event{{Cursor: 2}, {Cursor: 3}}))
	list, err := l.Events()
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.ErrorIs(t, l.Add("r", 1, []Event{{Cursor: 3}}), ErrEventsDiffer, "a gap")
	require.ErrorIs(t, l.Add("r", 1, []Event{{Cursor: 2, Amount: 1}}), ErrEventsDiffer, "another event")
	require.NoError(t, l.Add("r", 4, []Event{{Cursor: 5}}))
	_, err = l.Events()
	require.ErrorIs(t, err, ErrEventsDiffer, "nobody saw 4")
}
