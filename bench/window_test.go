package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/bench/servers"
)

func TestAWindowGetsWhatWasUnderWayInIt(t *testing.T) {
	began := time.Now()
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	seen := &timeline{}
	record := func(due, came int) { seen.record(at(due), at(came), tally{answers: 1}) }
	counts := func() []int64 {
		return mapOf(seen.windows, func(w *window) int64 { return w.tally.answers })
	}
	seen.open(Quiet, at(0))
	record(10, 20)
	seen.open(Quiet, at(50)) // the open window continues
	seen.open(OneSaves, at(100))
	record(90, 110) // due before, and delayed by the window
	record(110, 120)
	require.Equal(t, []int64{1, 2}, counts())
	seen.open(Aftermath, at(200))
	record(190, 210) // due in it
	record(80, 220)  // in flight all the time
	require.Equal(t, []int64{1, 4, 0}, counts())
	seen.open(Quiet, at(300))
	record(290, 310) // due after the snapshot, so not affected
	record(300, 320)
	record(150, 330)
	require.Equal(t, []int64{1, 5, 1, 1}, counts())
	seen.open(AllSave, at(400))
	record(150, 410) // in both snapshots: counts for the later one
	require.Equal(t, []int64{1, 5, 1, 1, 1}, counts())
	seen.close(at(500))
	require.Equal(t, at(500), seen.windows[4].ended)
	require.EqualValues(t, 100*time.Millisecond, seen.windows[1].ended.Sub(seen.windows[1].began))
}

func TestAWindowCountsEachDecisionOfAPipeline(t *testing.T) {
	due := time.Now()
	seen := &timeline{}
	seen.open(Quiet, due)
	seen.record(due, due.Add(time.Millisecond), tally{answers: 998})
	seen.record(due, due.Add(time.Second), tally{answers: 2, errors: 2, said: "UNKNOWN"})
	seen.record(due, due.Add(-time.Second), tally{})
	w := windowOf(seen.windows[0], time.Second)
	require.EqualValues(t, 998, w.Decisions)
	require.EqualValues(t, 2, w.Errors)
	require.InEpsilon(t, 1, w.P99Ms, 0.002)
	require.InEpsilon(t, 1000, w.P999Ms, 0.002)
	seen.record(due, due.Add(time.Hour), tally{answers: 1})
	require.InEpsilon(t, float64(servers.ReplyTimeout.Milliseconds()), windowOf(seen.windows[0], time.Second).MaxMs,
		0.002, "beyond the range is its end")
}
