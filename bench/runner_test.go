package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var fakeCommand = Command{Args: []string{"LIMIT", "{key}"}, Reply: decisionReply(3)}

var fakeScenario = Scenario{TokenBucket, 10, 10, 1000}

// fakePair is a target of 4000 decisions a second and one of 1000, which has no
// sliding log.
func fakePair(t *testing.T) (fast, slow *fakeServer, targets []Target, load *fakeLoad) {
	fast, slow = &fakeServer{reply: limiterOf(5)}, &fakeServer{reply: limiterOf(5)}
	both := map[Workload]Command{TokenBucket: fakeCommand, SlidingLog: fakeCommand}
	targets = []Target{
		{Name: "fast", Server: fast, Commands: both, Settle: []string{"SAVE"}},
		{Name: "slow", Server: slow, Commands: map[Workload]Command{TokenBucket: fakeCommand}},
	}
	load = &fakeLoad{perSecond: map[string]float64{startFake(t, fast): 4000, startFake(t, slow): 1000}}
	return fast, slow, targets, load
}

func TestRunInterleaves(t *testing.T) {
	fast, slow, targets, load := fakePair(t)
	var steps []Step
	runner := Runner{Load: load, Repetitions: 3, CellTime: time.Second, Progress: func(s Step) { steps = append(steps, s) }}
	report, err := runner.Run(context.Background(), targets, []Scenario{fakeScenario})
	require.NoError(t, err)

	require.Len(t, load.jobs, 2*2+3*2, "two calibrations each, then the repetitions")
	for i, job := range load.jobs[4:] {
		server, requests := fast, 4000
		if i%2 == 1 {
			server, requests = slow, 1000
		}
		require.Equal(t, server.addr, job.Addr, "repetition %d", i)
		require.Equal(t, requests, job.Requests, "repetition %d", i)
	}
	rows := report.Scenarios[0].Rows
	require.Equal(t, Spread{1, 1, 1}, rows[0].FirstOverThis)
	require.Equal(t, Spread{4, 4, 4}, rows[1].FirstOverThis)
	require.Equal(t, 0.5, rows[1].GeneratorBusy)
	require.Equal(t, Contender{"fast", "weir 1.2.3", [][]string{{"fake"}}}, report.Targets[0])
	require.Len(t, steps, 2*(3+1))
	require.Equal(t, Step{7, 8, fakeScenario, "slow"}, steps[7])
	require.Equal(t, []string{"start", "FLUSHALL", "SAVE", "SAVE", "SAVE", "SAVE", "SAVE", "stop"}, fast.seen())
	require.Equal(t, []string{"start", "FLUSHALL", "stop"}, slow.seen())
}

func TestRunLeavesOutWhoHasNoCommand(t *testing.T) {
	_, _, targets, load := fakePair(t)
	runner := Runner{Load: load, Repetitions: 1, CellTime: time.Second}
	report, err := runner.Run(context.Background(), targets, []Scenario{{SlidingLog, 1, 1, 10}})
	require.NoError(t, err)
	require.Len(t, report.Scenarios[0].Rows, 1)
	require.Equal(t, "fast", report.Scenarios[0].Rows[0].Target)
}

func TestRunStopsEveryServerOnFailure(t *testing.T) {
	errBroken := errors.New("broken")
	t.Run("of a start", func(t *testing.T) {
		fast, slow, targets, load := fakePair(t)
		slow.startup = errBroken
		_, err := (&Runner{Load: load, Repetitions: 1}).Run(context.Background(), targets, Standard())
		require.ErrorIs(t, err, errBroken)
		require.Equal(t, []string{"start", "stop"}, fast.seen())
		require.Equal(t, []string{"start", "stop"}, slow.seen())
	})
	t.Run("of a load", func(t *testing.T) {
		fast, slow, targets, load := fakePair(t)
		load.fail = errBroken
		_, err := (&Runner{Load: load, Repetitions: 1}).Run(context.Background(), targets, Standard())
		require.ErrorIs(t, err, errBroken)
		require.Contains(t, fast.seen(), "stop")
		require.Contains(t, slow.seen(), "stop")
	})
	t.Run("of the user's patience", func(t *testing.T) {
		fast, _, targets, load := fakePair(t)
		ctx, cancel := context.WithCancel(context.Background())
		load.before = cancel
		_, err := (&Runner{Load: load, Repetitions: 1}).Run(ctx, targets, Standard())
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, load.jobs, 1)
		require.Contains(t, fast.seen(), "stop")
	})
}

func TestRunRefusesWhatDoesNotDecide(t *testing.T) {
	for name, c := range map[string]struct {
		reply func([]string) string
		want  error
	}{
		"admits everything": {limiterOf(1 << 30), ErrNoLimit},
		"denies everything": {limiterOf(0), ErrNotADecision},
		"answers otherwise": {func([]string) string { return "+OK\r\n" }, ErrNotADecision},
	} {
		t.Run(name, func(t *testing.T) {
			fast, _, targets, load := fakePair(t)
			fast.reply = c.reply
			_, err := (&Runner{Load: load, Repetitions: 1}).Run(context.Background(), targets, Standard())
			require.ErrorIs(t, err, c.want)
			require.Empty(t, load.jobs)
		})
	}
}

func TestProbesSeeAnErrorAmongTheLoad(t *testing.T) {
	fast, _, targets, load := fakePair(t)
	honest := fast.reply
	fast.reply = func(request []string) string {
		if request[1] != verifyKey {
			return "-ERR only the first look is right\r\n"
		}
		return honest(request)
	}
	_, err := (&Runner{Load: load, Repetitions: 1}).Run(context.Background(), targets[:1], Standard()[:1])
	require.ErrorContains(t, err, "only the first look")
}

func TestRunRefusesAPlanThatIsTooLong(t *testing.T) {
	fast, _, targets, load := fakePair(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := (&Runner{Load: load, Repetitions: 100, CellTime: time.Second}).Run(ctx, targets, Standard())
	require.ErrorIs(t, err, ErrTooLong)
	require.Empty(t, fast.seen(), "nothing is started")
}

func TestStandardFitsItsTime(t *testing.T) {
	targets := []Target{Weir("weir", ""), RedisLua("redis-server", ""), RedisSet("redis-server", "")}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	require.Equal(t, 11, cells(targets, Standard()))
	require.NoError(t, (&Runner{Repetitions: 5, CellTime: 2 * time.Second}).fits(ctx, targets, Standard()))
}
