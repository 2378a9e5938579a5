package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var fakeCommand = Command{Args: []string{"LIMIT", "{key}"}, Reply: decisionReply(3)}

var fakeLoad = Load{Workload: TokenBucket, Clients: 10, Pipeline: 10, Keys: 1000}

// fakes are a fast target with 4000 decisions per second, and a slow one with 1000, which has no sliding log.
type fakes struct {
	fast, slow *fakeServer
	generator  *fakeGenerator
	targets    map[string]Target
	asked      []string // instances
}

func newFakes(t *testing.T) *fakes {
	f := &fakes{fast: &fakeServer{reply: limiterOf(5)}, slow: &fakeServer{reply: limiterOf(5)}}
	both := map[Workload]Command{TokenBucket: fakeCommand, SlidingLog: fakeCommand, Lasting: fakeCommand}
	f.targets = map[string]Target{
		"fast": {Name: "fast", Server: f.fast, Commands: both, Settle: []string{"SAVE"}},
		"slow": {Name: "slow", Server: f.slow, Commands: map[Workload]Command{TokenBucket: fakeCommand}},
	}
	f.generator = &fakeGenerator{perSecond: map[string]float64{startFake(t, f.fast): 4000, startFake(t, f.slow): 1000}}
	return f
}

func (f *fakes) find(name, instance string) (Target, error) {
	f.asked = append(f.asked, name+instance)
	t, ok := f.targets[name]
	if !ok {
		return Target{}, missing(name, "look elsewhere")
	}
	return t, nil
}

func (f *fakes) runner(repetitions int) *Runner {
	return &Runner{Generator: f.generator, Find: f.find, Repetitions: repetitions, CellTime: time.Second}
}

func (f *fakes) cell(name string) *cell {
	return &cell{Entrant: Entrant{Label: name, Target: name, Load: fakeLoad}, target: f.targets[name]}
}

func fakeScenario(targets ...string) Scenario { return beside("fakes", fakeLoad, targets...) }

func TestRunInterleaves(t *testing.T) {
	f := newFakes(t)
	var steps []Step
	runner := f.runner(3)
	runner.Progress = func(s Step) { steps = append(steps, s) }
	report, err := runner.Run(context.Background(), []Scenario{fakeScenario("fast", "slow", "none")})
	require.NoError(t, err)

	require.Len(t, f.generator.jobs, 2*2+3*2, "two calibrations each, then the repetitions")
	for i, job := range f.generator.jobs[4:] {
		server, requests := f.fast, 4000
		if i%2 == 1 {
			server, requests = f.slow, 1000
		}
		require.Equal(t, server.addr, job.Addr, "repetition %d", i)
		require.Equal(t, requests, job.Requests, "repetition %d", i)
		require.Equal(t, time.Second, job.Lasting)
	}
	rows := report.Scenarios[0].Rows
	require.Equal(t, Spread{1, 1, 1}, rows[0].FirstOverThis)
	require.Equal(t, Spread{4, 4, 4}, rows[1].FirstOverThis)
	require.Equal(t, 0.5, rows[1].AdmittedShare)
	require.InDelta(t, 1000, rows[1].GeneratorMicros, 1e-9)
	require.Equal(t, Contender{"fast", "weir 1.2.3", [][]string{{"fake"}}}, report.Targets[0])
	require.Equal(t, "none", report.LeftOut[0].Name)
	require.Contains(t, report.LeftOut[0].Why, "look elsewhere")
	require.Len(t, steps, 2*(3+1))
	require.Equal(t, Step{7, 8, "fakes", "slow"}, steps[7])
	require.Equal(t, []string{"start", "FLUSHALL", "SAVE", "SAVE", "SAVE", "SAVE", "SAVE", "stop"}, f.fast.seen())
	require.Equal(t, []string{"start", "FLUSHALL", "stop"}, f.slow.seen())
}

func TestRunLeavesOutWhoHasNoCommand(t *testing.T) {
	f := newFakes(t)
	log := fakeLoad
	log.Workload = SlidingLog
	report, err := f.runner(1).Run(
		context.Background(), []Scenario{beside("log", log, "slow"), beside("both", log, "fast", "slow")})
	require.NoError(t, err)
	require.Len(t, report.Scenarios, 1, "one in which nobody is left is none")
	require.Len(t, report.Scenarios[0].Rows, 1)
	require.Equal(t, "fast", report.Scenarios[0].Rows[0].Target)
	require.Empty(t, f.slow.seen(), "nor is its server started")
}

func TestServersStopBehindTheirLastScenario(t *testing.T) {
	f := newFakes(t)
	var stopped []int // scenarios measured when slow was stopped
	runner := f.runner(1)
	runner.Progress = func(s Step) {
		if seen := f.slow.seen(); len(seen) > 0 && seen[len(seen)-1] == "stop" {
			stopped = append(stopped, s.Done)
		}
	}
	_, err := runner.Run(
		context.Background(), []Scenario{fakeScenario("fast", "slow"), fakeScenario("slow"), fakeScenario("fast")})
	require.NoError(t, err)
	require.Equal(t, []int{6, 7}, stopped)
	require.Equal(t, []string{"fast", "slow"}, f.asked, "scenarios share servers")
}

func TestFilledScenariosHaveServersOfTheirOwn(t *testing.T) {
	s := beside("memory", kept(1000), "fast")
	require.NotEqual(t, s.key(s.Entrants[0]), fakeScenario("fast").key(s.Entrants[0])+"x")
	require.Equal(t, "memory-fast", s.instance(s.Entrants[0]))
	require.Empty(t, fakeScenario("fast").instance(fakeScenario("fast").Entrants[0]))
}

func TestAShareOfATopRateIsAnOpenLoopForAll(t *testing.T) {
	f := newFakes(t)
	s := fakeScenario("fast", "slow")
	s.RateOf, s.RateShare = "slow", 0.5
	report, err := f.runner(2).Run(context.Background(), []Scenario{s})
	require.NoError(t, err)
	jobs := f.generator.jobs
	require.Len(t, jobs, 2+2*(1+2), "the top rate, then a warm-up and the repetitions each")
	for _, job := range jobs[:2] {
		require.Equal(t, f.slow.addr, job.Addr)
		require.Zero(t, job.Load.PerSecond)
	}
	for _, job := range jobs[2:] {
		require.EqualValues(t, 500, job.Load.PerSecond)
	}
	require.Equal(t, 500, jobs[4].Requests)
	require.Contains(t, report.Scenarios[0].About, "open loop at 500/s, 0.5 of the top rate of slow")
	require.Equal(t, []string{"start", "FLUSHALL", "stop"}, f.slow.seen(), "prepared once")
}

func TestRunStopsEveryServerOnFailure(t *testing.T) {
	errBroken := errors.New("broken")
	both := []Scenario{fakeScenario("fast", "slow")}
	t.Run("of a start", func(t *testing.T) {
		f := newFakes(t)
		f.slow.startup = errBroken
		_, err := f.runner(1).Run(context.Background(), both)
		require.ErrorIs(t, err, errBroken)
		require.Equal(t, "stop", f.fast.seen()[1])
		require.Equal(t, "stop", f.slow.seen()[1])
	})
	t.Run("of a load", func(t *testing.T) {
		f := newFakes(t)
		f.generator.fail = errBroken
		_, err := f.runner(1).Run(context.Background(), both)
		require.ErrorIs(t, err, errBroken)
		require.Contains(t, f.fast.seen(), "stop")
		require.Contains(t, f.slow.seen(), "stop")
	})
	t.Run("of the user's patience", func(t *testing.T) {
		f := newFakes(t)
		ctx, cancel := context.WithCancel(context.Background())
		f.generator.before = cancel
		_, err := f.runner(1).Run(ctx, both)
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, f.generator.jobs, 1)
		require.Contains(t, f.fast.seen(), "stop")
	})
}

func TestWhatWasMeasuredBeforeAFailureIsKept(t *testing.T) {
	f := newFakes(t)
	first, second := fakeScenario("slow"), fakeScenario("fast")
	f.fast.startup = errors.New("broken")
	report, err := f.runner(1).Run(context.Background(), []Scenario{first, second})
	require.ErrorIs(t, err, f.fast.startup)
	require.Len(t, report.Scenarios, 1)
}

func TestRunRefusesWhatDoesNotDecide(t *testing.T) {
	for name, c := range map[string]struct {
		reply func([]string) string
		want  error
	}{
		"admits everything": {limiterOf(1 << 30), ErrNoLimit},
		"denies everything": {limiterOf(0), ErrNotADecision},
		"answers otherwise": {func([]string) string { return "+OK\r\n" }, ErrNotADecision},
		"answers an error":  {func([]string) string { return "-ERR no\r\n" }, ErrNotADecision},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakes(t)
			f.fast.reply = c.reply
			_, err := f.runner(1).Run(context.Background(), []Scenario{fakeScenario("fast")})
			require.ErrorIs(t, err, c.want)
			require.Empty(t, f.generator.jobs)
		})
	}
}

func TestAPlanThatIsTooLongIsRefused(t *testing.T) {
	f := newFakes(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := f.runner(100).Run(ctx, []Scenario{fakeScenario("fast", "slow")})
	require.ErrorIs(t, err, ErrTooLong)
	require.Empty(t, f.fast.seen(), "nothing is started")
}

// TestALateRunShortensItsCells checks a machine that is slower than planned: its cells become shorter, and then the
// run skips them.
func TestALateRunShortensItsCells(t *testing.T) {
	f := newFakes(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	runner := f.runner(1)
	runner.CellTime = 0
	var left time.Duration // of the hour, which the runner's context reports
	late := &lateContext{Context: ctx, left: &left}
	left = 20 * time.Second
	f.generator.before = func() { left -= 2200 * time.Millisecond }
	second, third := fakeScenario("slow"), fakeScenario("fast", "slow")
	second.Name, third.Name = "second", "third"
	report, err := runner.Run(late, []Scenario{fakeScenario("fast"), second, third})
	require.NoError(t, err)
	require.Equal(t, "2s", report.Scenarios[0].CellTime)
	require.Len(t, report.Scenarios, 3)
	require.NotEqual(t, "2s", report.Scenarios[2].CellTime)

	f = newFakes(t)
	left = 15 * time.Second
	f.generator.before = func() { left -= 5 * time.Second }
	runner = f.runner(1)
	runner.CellTime = 0
	report, err = runner.Run(late, []Scenario{fakeScenario("fast"), second})
	require.NoError(t, err)
	require.Len(t, report.Scenarios, 1)
	require.Equal(t, "second", report.LeftOut[0].Name)
	require.Contains(t, report.LeftOut[0].Why, ErrTooLong.Error())
	require.NotContains(t, f.slow.seen(), "start")
}

// lateContext has a deadline that a test can bring closer.
type lateContext struct {
	context.Context
	left *time.Duration
}

func (l *lateContext) Deadline() (time.Time, bool) { return time.Now().Add(*l.left), true }

// TestSuitesFitTheirTime checks that make bench ends in its time limit with any installed programs.
func TestSuitesFitTheirTime(t *testing.T) {
	tools := Tools{Weir: "weir", RedisServer: "redis-server", RedisCell: "cell.so", ThrottleCrab: "crab"}
	for suite, limit := range map[string]time.Duration{
		StandardSuite: 285 * time.Second, ClusterSuite: 189 * time.Second, FullSuite: 80 * time.Minute,
		GrowthSuite: 90 * time.Minute,
	} {
		scenarios, err := Suite(suite)
		require.NoError(t, err)
		contenders := Contenders{Tools: tools, Dir: t.TempDir()}
		runner := Runner{Find: contenders.Target, Repetitions: 5}
		all, err := runner.contests(scenarios, &Report{})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		cellTime, err := runner.plan(ctx, all)
		cancel()
		require.NoError(t, err, suite)
		require.GreaterOrEqual(t, cellTime, 500*time.Millisecond, "%s: long enough to tell", suite)
		require.LessOrEqual(t, cellTime, mostCell)
	}
}
