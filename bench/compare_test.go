package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after []float64
		more          bool
		want          Verdict
	}{
		{"faster", []float64{100, 105, 110}, []float64{120, 125, 130}, true, Better},
		{"slower", []float64{120, 125, 130}, []float64{100, 105, 110}, true, Worse},
		{"a lower latency", []float64{12, 13, 14}, []float64{5, 6, 7}, false, Better},
		{"a higher latency", []float64{5, 6, 7}, []float64{12, 13, 14}, false, Worse},
		{"one repetition among the others", []float64{100, 105, 121}, []float64{120, 125, 130}, true, Same},
		{"touching", []float64{100, 110, 120}, []float64{120, 130, 140}, true, Same},
		{"apart, but by less than any two runs", []float64{100, 100.1, 100.2}, []float64{101, 101.1, 101.2}, true,
			Same},
		{"equal", []float64{100}, []float64{100}, true, Same},
	} {
		require.Equal(t, c.want, verdictOn(spreadOf(c.before), spreadOf(c.after), c.more), c.name)
	}
}

// changed returns a report with other figures in one row.
func changed(change func(*Sample)) *Report {
	r := sampleReport()
	rows := r.Scenarios[0].Rows
	for i := range rows[0].Samples {
		change(&rows[0].Samples[i])
	}
	summarize(rows)
	return r
}

func TestComparisonSaysWhatChanged(t *testing.T) {
	after := changed(func(s *Sample) {
		s.PerSecond *= 2
		s.P999Ms *= 3
		s.MaxMs = 1000
	})
	after.Scenarios[0].Rows = append(after.Scenarios[0].Rows, Row{Label: "new"})
	c := CompareReports(sampleReport(), after)
	verdicts := map[Figure]Verdict{}
	for _, change := range c.Changes {
		if change.Label == "weir" {
			verdicts[change.Figure] = change.Verdict
		} else {
			require.Equal(t, Same, change.Verdict, change.Figure)
		}
	}
	require.Equal(t, map[Figure]Verdict{Rate: Better, P999: Worse, P50: Same, CPU: Same}, verdicts,
		"the slowest request is nobody's figure")
	require.Equal(t, []string{"bucket-p128, new: only after"}, c.Missing)
	require.Empty(t, c.Doubts)

	var out strings.Builder
	require.NoError(t, c.WriteText(&out))
	text := strings.Join(strings.Fields(out.String()), " ")
	require.Contains(t, text,
		"worse: scenario entrant figure before after change bucket-p128 weir p99.9 4 ms (4 ms-4 ms) 12 ms (12 "+
			"ms-12 ms) +200 %")
	require.Contains(t, text,
		"better: scenario entrant figure before after change bucket-p128 weir decisions/s 1.75M (1.7M-1.8M) 3.5M "+
			"(3.4M-3.6M) +100 %")
}

func TestComparisonDoubtsOtherCircumstances(t *testing.T) {
	other := sampleReport()
	other.Machine.CPU, other.CellTime = "Other CPU", "3s"
	c := CompareReports(sampleReport(), other)
	require.Len(t, c.Doubts, 2)
	other.Machine.LoadAverage = 5
	require.Contains(t, CompareReports(sampleReport(), other).Doubts,
		"the machine was busy before the second run (load average 5.00)")
	var out strings.Builder
	require.NoError(t, c.WriteText(&out))
	require.Contains(t, out.String(), "WARNING: the machine differs: 2 x CPU")
	require.Contains(t, out.String(), "nothing got better")
}
