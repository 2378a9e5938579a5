package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGoalsAreJudgedByRepetition(t *testing.T) {
	report := sampleReport()
	report.Judge([]Goal{
		{"bucket-p128", Rate, "weir", "redis+lua", 12, 0},
		{"bucket-p128", Rate, "redis+lua", "weir", 1, 0},   // missed
		{"bucket-p128", CPU, "weir", "", 0, 0.55},          // missed
		{"bucket-p128", P999, "weir", "redis+lua", 0, 0.7}, // met
		{"bucket-p1", Rate, "weir", "redis+lua", 1, 0},     // not measured, like the next two
		{"bucket-p128", Rate, "weir", "nobody", 1, 0},
		{"bucket-p128", BytesPerKey, "weir", "redis+lua", 0, 1},
	})
	require.Len(t, report.Results, 4)
	require.Equal(t, Spread{12.5, 10, 15}, report.Results[0].Measured)
	var out strings.Builder
	require.NoError(t, report.WriteTable(&out))
	text := strings.Join(strings.Fields(out.String()), " ")
	require.Contains(t, text, "weir redis+lua at least 12.00x 12.50x (10.00x-15.00x) bucket", "met: nothing is said")
	require.Contains(t, text, "redis+lua weir at least 1.00x 0.08x (0.07x-0.10x) missed")
	require.Contains(t, text, "weir itself at most 0.55µs 0.60µs (0.50µs-0.70µs) missed")
	require.Contains(t, text, "p99.9 weir redis+lua at most 0.70x 0.05x")
}

// TestGoalsAreMeasured checks that a scenario measures each goal. A goal without a measurement would be omitted
// silently.
func TestGoalsAreMeasured(t *testing.T) {
	all, err := Suite(FullSuite)
	require.NoError(t, err)
	for _, g := range Goals() {
		var labels []string
		for _, s := range all {
			if s.Name == g.Scenario {
				labels = mapOf(s.Entrants, func(e Entrant) string { return e.Label })
			}
		}
		require.Contains(t, labels, g.Of, g.Scenario)
		if g.Over != "" {
			require.Contains(t, labels, g.Over, g.Scenario)
		}
	}
}

func TestScenarioNamesAreTheirOwn(t *testing.T) {
	all, err := Suite(FullSuite)
	require.NoError(t, err)
	names := map[string]bool{}
	for _, s := range all {
		require.False(t, names[s.Name], s.Name)
		names[s.Name] = true
		labels := map[string]bool{}
		for _, e := range s.Entrants {
			require.False(t, labels[e.Label], "%s: %s", s.Name, e.Label)
			labels[e.Label] = true
			require.NoError(t, e.Load.check(), s.Name)
		}
		if s.RateOf != "" {
			require.True(t, labels[s.RateOf], s.Name)
		}
	}
	picked, err := Pick([]string{"open-half", "bucket-p1"})
	require.NoError(t, err)
	require.Equal(t, []string{"bucket-p1", "open-half"}, mapOf(picked, func(s Scenario) string { return s.Name }))
	_, err = Pick([]string{"open-haff"})
	require.ErrorIs(t, err, ErrUnknownName)
	require.ErrorContains(t, err, "there are bucket-p128, ")
	_, err = Suite("short")
	require.ErrorIs(t, err, ErrUnknownName)
}

func TestScenariosCanBeReshaped(t *testing.T) {
	s := fakeScenario("fast", "slow")
	same, err := s.Reshaped(func(*Load) {})
	require.NoError(t, err)
	require.Equal(t, s, same)
	other, err := s.Reshaped(func(l *Load) { l.Clients = 7 })
	require.NoError(t, err)
	require.Equal(t, 7, other.Entrants[1].Load.Clients)
	require.Contains(t, other.About, "-c 7")
	require.Equal(t, 10, s.Entrants[1].Load.Clients, "the catalogue's stays")
	for _, change := range []func(*Load){
		func(l *Load) { l.Clients = 0 }, func(l *Load) { l.Pipeline = -1 }, func(l *Load) { l.Keys = 0 },
		func(l *Load) { l.Distribution = "normal" },
		func(l *Load) { l.PerSecond = -1 }, func(l *Load) { l.Clients = mostClients + 1 },
	} {
		_, err := s.Reshaped(change)
		require.ErrorIs(t, err, ErrBadLoad)
	}
	require.Len(t, s.Only([]string{"slow"}).Entrants, 1)
	require.Len(t, s.Only(nil).Entrants, 2)
}
