package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sampleWindows are two rounds of windows. All decisions of a window have the same latency.
func sampleWindows() []*window {
	began := time.Now()
	var all []*window
	for i, w := range []struct {
		kind WindowKind
		ms   int
	}{{Quiet, 2}, {OneSaves, 5}, {Aftermath, 3}, {Quiet, 4}, {AllSave, 16}, {Aftermath, 9}, {Quiet, 1}, {OneSaves, 2},
		{Aftermath, 1}, {Quiet, 1}} {
		window := newWindow(w.kind, began.Add(time.Duration(i)*time.Second))
		window.ended = window.began.Add(time.Second)
		window.latency.record(time.Duration(w.ms)*time.Millisecond, 100)
		window.tally = tally{answers: 100}
		all = append(all, window)
	}
	return all
}

func TestSnapshotsAreComparedWithTheQuietBefore(t *testing.T) {
	report := &SnapshotReport{Keys: 1000, PerSecond: 100}
	windows := sampleWindows()
	windows[4].tally = tally{answers: 100, errors: 3, said: "UNKNOWN it may have been counted"}
	report.summarize(windows)
	require.Len(t, report.Windows, 10)
	near := func(want, got Spread) {
		t.Helper()
		require.InDeltaSlice(t, []float64{want.Median, want.Min, want.Max}, []float64{got.Median, got.Min, got.Max},
			0.02)
	}
	near(Spread{2, 1, 3}, report.OneExtraMs)
	near(Spread{12, 12, 12}, report.AllExtraMs)
	require.Equal(t, []WindowKind{Quiet, OneSaves, AllSave, Aftermath},
		mapOf(report.Kinds, func(w Window) WindowKind { return w.Kind }))
	quiet := report.Kinds[0]
	require.EqualValues(t, 4, quiet.Seconds)
	require.EqualValues(t, 400, quiet.Decisions)
	require.InDelta(t, 4, quiet.P999Ms, 0.01)

	report.charge([]time.Duration{time.Second, 2 * time.Second, 0},
		[]time.Duration{time.Second + 997*time.Microsecond, 2 * time.Second, 5 * time.Second}, 10*time.Second)
	require.InDelta(t, 1, report.CPUMicros, 1e-9, "a microsecond for each of 997 decisions")
	require.InDelta(t, 0.5, report.GeneratorBusy, 1e-9)

	var out strings.Builder
	require.NoError(t, (&Report{Snapshots: report}).WriteTable(&out))
	text := strings.Join(strings.Fields(out.String()), " ")
	require.Contains(t, text, "all nodes' 1.0 s 97 3 16 ms 16 ms 16 ms 16 ms")
	require.Contains(t, text, "the leader's 2 ms (1 ms to 3 ms), all nodes' 12 ms (12 ms to 12 ms)")
	require.Contains(t, text, "WARNING: 3 of 100 requests were answered by an error, the first: UNKNOWN")
}

func TestASnapshotWithoutDecisionsIsNotCompared(t *testing.T) {
	report := &SnapshotReport{}
	windows := sampleWindows()[:2]
	windows[1] = newWindow(OneSaves, windows[0].ended)
	windows[1].ended = windows[1].began.Add(time.Microsecond)
	report.summarize(windows)
	require.Len(t, report.Kinds, 2)
	require.Zero(t, report.OneExtraMs, "too short to touch a decision")
}
