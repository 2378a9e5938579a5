package bench

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRivalsOfADirectoryComeFirst(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"redis-server", "valkey-server", "libredis_cell.so"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o755))
	}
	got := Tools{Weir: "weir", RedisServer: "installed", ThrottleCrab: "installed"}.In(dir)
	require.Equal(t, Tools{Weir: "weir", RedisServer: filepath.Join(dir, "redis-server"),
		Valkey: filepath.Join(dir, "valkey-server"), RedisCell: filepath.Join(dir, "libredis_cell.so"),
		ThrottleCrab: "installed"}, got)
}

func TestRivalsMeetAtEachDepthUnderEachGenerator(t *testing.T) {
	all, err := Suite(RivalsSuite)
	require.NoError(t, err)
	names := mapOf(all, func(s Scenario) string { return s.Name })
	require.Equal(t, []string{"rivals-p1", "rivals-p1-rb1", "rivals-p1-rb2", "rivals-p16", "rivals-p16-rb1",
		"rivals-p16-rb2", "rivals-p128", "rivals-p128-rb1", "rivals-p128-rb2"}, names)
	picked, err := Pick([]string{"rivals-p1-rb2"})
	require.NoError(t, err)
	require.Contains(t, picked[0].About, "load by redis-benchmark --threads 2")
	line := RedisBenchmark{Binary: "rb"}.CommandLine(Job{Addr: "127.0.0.1:1", Commands: weirCommands(),
		Load: picked[0].Entrants[0].Load, Requests: 50})
	require.Contains(t, strings.Join(line, " "), "--threads 2 -c 50")
}

func TestALoadWithoutItsGeneratorIsLeftOut(t *testing.T) {
	f := newFakes(t)
	runner := f.runner(1)
	runner.Generator = Generators{OurGenerator: f.generator}
	other := fakeLoad
	other.By = ByRedisBenchmark
	report, err := runner.Run(context.Background(), []Scenario{fakeScenario("fast"), beside("other", other, "fast")})
	require.NoError(t, err)
	require.Len(t, report.Scenarios, 1)
	require.Equal(t, "load by redis-benchmark", report.LeftOut[0].Name)
	require.Contains(t, report.LeftOut[0].Why, "is not installed")

	second := &fakeGenerator{perSecond: f.generator.perSecond}
	runner.Generator = Generators{OurGenerator: f.generator, ByRedisBenchmark: second}
	_, err = runner.Run(context.Background(), []Scenario{beside("other", other, "fast")})
	require.NoError(t, err)
	require.Len(t, second.jobs, 3)
}

// TestTwoThreadsAreCalibratedWithOne keeps the calibration from a load that seems to last 250 ms whatever it does.
func TestTwoThreadsAreCalibratedWithOne(t *testing.T) {
	f := newFakes(t)
	one, two := &fakeGenerator{perSecond: f.generator.perSecond}, &fakeGenerator{perSecond: f.generator.perSecond}
	runner := f.runner(3)
	runner.Generator = Generators{ByRedisBenchmark: one, ByTwoThreads: two}
	load := fakeLoad
	load.By = ByTwoThreads
	_, err := runner.Run(context.Background(), []Scenario{beside("two", load, "fast")})
	require.NoError(t, err)
	require.Len(t, one.jobs, 2)
	require.Len(t, two.jobs, 3)
	require.Equal(t, ByTwoThreads, two.jobs[0].Load.By)
}

// rivalsReport has a rival that is stronger than another, and a SET that is stronger than both but limits nothing.
func rivalsReport() *Report {
	rows := []Row{{Target: weirName}, {Target: crabName}, {Target: cellName}, {Target: setName}, {Target: incrName}}
	for i, perSecond := range []float64{4000, 1000, 2000, 8000, 5000} {
		rows[i].Label = rows[i].Target
		rows[i].Samples = []Sample{{PerSecond: perSecond}}
	}
	summarize(rows)
	s := rivals()[0]
	s.Entrants = nil
	return &Report{Scenarios: []ScenarioReport{{Scenario: s, Rows: rows}}}
}

func TestTheStrongestRivalIsNamed(t *testing.T) {
	var table, page strings.Builder
	require.NoError(t, rivalsReport().WriteTable(&table))
	require.Contains(t, strings.Join(strings.Fields(table.String()), " "),
		"rivals-p1 4k (4k-4k) redis-cell 2k (2k-2k) 2.00x (2.00x-2.00x) 0.50x (0.50x-0.50x) 0.80x (0.80x-0.80x) "+
			"8k (8k-8k) 5k (5k-5k)")
	require.NoError(t, rivalsReport().WriteMarkdown(&page))
	require.Contains(t, page.String(), "### The strongest rivals")
	require.NotContains(t, sampleMarkdown(t), "strongest", "a report of other scenarios")
}

func sampleMarkdown(t *testing.T) string {
	var page strings.Builder
	require.NoError(t, sampleReport().WriteMarkdown(&page))
	return page.String()
}

func TestCountReply(t *testing.T) {
	reply := countReply()
	admitted, err := reply.Read(answer{kind: ':', first: [2]int64{3}})
	require.NoError(t, err)
	require.True(t, admitted)
	_, err = reply.Read(answer{kind: ':', first: [2]int64{0}})
	require.ErrorIs(t, err, ErrNotADecision)
	_, err = reply.Read(answer{kind: '+', said: []byte("OK")})
	require.ErrorIs(t, err, ErrNotADecision)
}
