package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGoalsAreComparedByRepetition(t *testing.T) {
	report := sampleReport()
	first := report.Scenarios[0].Scenario
	other := first
	other.Pipeline = 1
	report.Compare([]Goal{
		{first, "weir", "redis+lua", 12}, {first, "redis+lua", "weir", 1}, // not met
		{other, "weir", "redis+lua", 1}, {first, "weir", "nobody", 1}, // not measured
	})
	require.Len(t, report.Ratios, 2)
	require.Equal(t, Spread{12.5, 10, 15}, report.Ratios[0].Measured)
	var out strings.Builder
	require.NoError(t, report.WriteTable(&out))
	text := strings.Join(strings.Fields(out.String()), " ")
	require.Contains(t, text, "keys weir redis+lua at least 12x 12.50x (10.00x-15.00x) token", "met: nothing is said")
	require.Contains(t, text, "keys redis+lua weir at least 1x 0.08x (0.07x-0.10x) missed")
}

// A goal that names what no suite measures would be left out in silence.
func TestClusterGoalsAreMeasured(t *testing.T) {
	targets := ClusterTargets("weir", "redis-server", t.TempDir())
	var measured []ScenarioReport
	for _, s := range ClusterSuite() {
		report := ScenarioReport{Scenario: s}
		for _, target := range entrants(targets, s) {
			report.Rows = append(report.Rows, Row{Target: target.Name, Samples: []Sample{{PerSecond: 1}}})
		}
		measured = append(measured, report)
	}
	require.Len(t, ratiosFor(ClusterGoals(), measured), len(ClusterGoals()))
}
