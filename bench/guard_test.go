package bench

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// guardFakes returns fakes in which this revision has a quarter of the base's rate.
func guardFakes(t *testing.T) *fakes {
	f := newFakes(t)
	f.targets[baseName], f.targets[weirName] = f.targets["fast"], f.targets["slow"]
	return f
}

func TestGuardMeasuresPairsByTurns(t *testing.T) {
	f := guardFakes(t)
	guard := Guard{Pairs: 8, Runner: *f.runner(5)}
	report, err := guard.Run(context.Background(), []Scenario{beside("only", fakeLoad, luaName, weirName)})
	require.NoError(t, err)
	require.Equal(t, 8, report.Pairs)

	var order []string
	for i, job := range f.generator.jobs {
		if i%6 >= 4 { // a pair has four calibrations
			order = append(order, job.Addr)
		}
	}
	base, this := f.fast.addr, f.slow.addr
	require.Equal(t, []string{base, this, this, base}, order[:4], "the order alternates")
	require.Len(t, order, 2*8)
	starts := strings.Count(strings.Join(f.slow.seen(), " "), "start")
	require.Equal(t, 8, starts, "each pair has new processes")

	verdicts := map[Figure]Verdict{}
	for _, p := range report.Figures {
		verdicts[p.Figure] = p.Verdict
	}
	require.Equal(t, map[Figure]Verdict{Rate: Worse, CPU: Unknown, P99: Unknown}, verdicts)
	require.Equal(t, Spread{0.25, 0.25, 0.25}, report.Figures[0].Ratio)

	report.Figures, report.Base, report.This = report.Figures[:1], "abc", "def"
	var out strings.Builder
	require.NoError(t, report.WriteText(&out))
	text := strings.Join(strings.Fields(out.String()), " ")
	require.Contains(t, text, "base abc, this def, 8 pairs alternately")
	require.Contains(t, text, "only decisions/s 4k 1k 0.25x (0.250-0.250) worse")
	require.Contains(t, text, "verdict: 0 better, 1 worse, 0 within the noise")
	report.Figures[0].Verdict = Same
	out.Reset()
	require.NoError(t, report.WriteText(&out))
	require.Contains(t, out.String(), "verdict: within the noise")
}

func TestGuardRefusesPairsThatTellNothing(t *testing.T) {
	f := guardFakes(t)
	_, err := (&Guard{Pairs: 6, Runner: *f.runner(1)}).Run(context.Background(), GuardScenarios())
	require.ErrorIs(t, err, ErrTooFewPairs)
	require.Empty(t, f.generator.jobs)
	_, err = (&Guard{Pairs: 16, Runner: *f.runner(1)}).Run(context.Background(), []Scenario{fakeScenario("fast")})
	require.ErrorContains(t, err, "no chosen scenario")
	require.GreaterOrEqual(t, medianRank(DefaultPairs, GuardRisk/float64(len(newPairs(GuardScenarios())))), 3)
}

func TestGuardReportsThePairsBeforeAFailure(t *testing.T) {
	f := guardFakes(t)
	broken := errors.New("broken")
	f.generator.before = func() {
		if len(f.generator.jobs) > 9*6 {
			f.generator.fail = broken
		}
	}
	guard := &Guard{Pairs: 16, Runner: *f.runner(1)}
	report, err := guard.Run(context.Background(), []Scenario{fakeScenario(weirName)})
	require.ErrorIs(t, err, broken)
	require.Equal(t, 9, report.Pairs)
	require.Equal(t, Worse, report.Figures[0].Verdict)

	f.generator.before, f.generator.fail = nil, nil
	delete(f.targets, baseName)
	_, err = (&Guard{Pairs: 16, Runner: *f.runner(1)}).Run(context.Background(), []Scenario{fakeScenario(weirName)})
	require.ErrorContains(t, err, baseName+": ")
}
