package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/bench"
	"github.com/weir-project/weir/internal/cli/cmdline"
)

func parseBench(t *testing.T, args ...string) *measureCmd {
	var parsed cli
	_, err := newParser(&parsed).Parse(args)
	require.NoError(t, err)
	return &parsed.Run
}

func TestBenchSuitesHaveTheirOwnTimes(t *testing.T) {
	for name, c := range map[string]struct {
		args          []string
		cell, timeout time.Duration
		keys          int
	}{
		"standard":     {nil, 0, 5*time.Minute - lastStop, 5_000_000},
		"cluster":      {[]string{"--suite=cluster"}, 0, 6*time.Minute - lastStop, 5_000_000},
		"full":         {[]string{"--suite=full"}, 0, longTimeout, 5_000_000},
		"one scenario": {[]string{"--scenario=memory-10m"}, 0, longTimeout, 5_000_000},
		"asked for": {[]string{"--suite=cluster", "--cell-time=3s", "--timeout=1h", "--snapshot-keys=7"},
			3 * time.Second, time.Hour, 7},
		"quick":          {[]string{"--suite=cluster", "--quick"}, quickCell, quickTimeout, quickKeys},
		"quick, no keys": {[]string{"--suite=cluster", "--quick", "--snapshot-keys=0"}, quickCell, quickTimeout, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := parseBench(t, c.args...)
			require.NoError(t, m.complete())
			require.Equal(t, c.cell, m.CellTime)
			require.Equal(t, c.timeout, m.Timeout)
			require.Equal(t, c.keys, m.SnapshotKeys)
		})
	}
	for arg, accepted := range map[string]string{
		"--repetitions=0": "1 or more", "--cell-time=-1s": "0 or more", "--snapshot-keys=-1": "0 or more",
	} {
		_, err := newParser(new(cli)).Parse([]string{arg})
		require.ErrorContains(t, err, accepted, arg)
	}
	for _, load := range []string{"0", "-1", "1.5", "NaN"} {
		require.ErrorContains(t, parseBench(t, "--snapshot-load="+load).complete(), "--snapshot-load")
	}
}

func TestBenchSuitesExist(t *testing.T) {
	for suite := range timeouts {
		_, err := parseBench(t, "--suite="+suite).scenarios()
		require.NoError(t, err)
	}
	for _, c := range []struct {
		args []string
		want bool
	}{
		{nil, false}, {[]string{"--suite=cluster"}, true}, {[]string{"--suite=full"}, true},
		{[]string{"--suite=standalone"}, false},
		{[]string{"--suite=cluster", "--scenario=cluster-p1"}, false},
		{[]string{"--suite=cluster", "--snapshot-keys=0"}, false},
	} {
		require.Equal(t, c.want, parseBench(t, c.args...).snapshotsWanted(), c.args)
	}
}

func TestBenchFlagsChangeEveryLoad(t *testing.T) {
	all, err := parseBench(t, "--scenario=bucket-p1,bucket-p16", "--target=weir,redis+lua", "--connections=7",
		"--distribution=zipf",
		"--rate=1000", "--keys=9").scenarios()
	require.NoError(t, err)
	require.Len(t, all, 2)
	for _, s := range all {
		require.Len(t, s.Entrants, 2)
		for _, e := range s.Entrants {
			require.Equal(t, 7, e.Load.Clients)
			require.Equal(t, bench.Zipf, e.Load.Distribution)
			require.EqualValues(t, 1000, e.Load.PerSecond)
			require.Equal(t, 9, e.Load.Keys)
		}
	}
	for name, args := range map[string][]string{
		"a scenario": {"--scenario=bucket"}, "a target": {"--target=memcached"},
	} {
		_, err := parseBench(t, args...).scenarios()
		require.Error(t, err, name)
	}
	var out strings.Builder
	require.NoError(t, list(&out, all))
	require.Contains(t, out.String(), "bucket-p1")
}

func TestBenchWritesWhatIsAskedFor(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(file("page.md"), []byte("<!-- figures: begin -->\n<!-- figures: end -->\n"), 0o644))
	report := &bench.Report{Scenarios: []bench.ScenarioReport{{}}, CellTime: "1s"}
	out := benchOutputs{JSON: file("a.json"), Markdown: file("page.md")}
	var said strings.Builder
	require.NoError(t, out.write(&said, report, nil))
	for _, name := range []string{"a.json", "page.md"} {
		require.Contains(t, said.String(), "written: "+file(name))
		text, err := os.ReadFile(file(name))
		require.NoError(t, err)
		require.Contains(t, string(text), "1s")
	}
	require.NoError(t, benchOutputs{}.write(io.Discard, report, nil), "nothing asked for")
	require.ErrorIs(t, benchOutputs{Markdown: file("a.json")}.write(io.Discard, report, nil), bench.ErrNoMarkers)

	part := &bench.Report{Scenarios: report.Scenarios, CellTime: "2s"}
	require.NoError(t, out.write(&said, part, context.Canceled))
	require.Contains(t, said.String(), "left as it is: "+file("page.md"))
	for name, cell := range map[string]string{"a.json": "2s", "page.md": "1s"} {
		text, err := os.ReadFile(file(name))
		require.NoError(t, err)
		require.Contains(t, string(text), cell, "%s after a run that was interrupted", name)
	}
}

// TestSlips checks that weir-bench explains a wrong flag as weir does.
func TestSlips(t *testing.T) {
	for arg, says := range map[string]string{
		"--suite=fast": `--suite must be one of "standard"`, "--scenaro=x": "unknown flag --scenaro",
	} {
		_, err := newParser(new(cli)).Parse([]string{arg})
		err = cmdline.Explain(err)
		require.ErrorContains(t, err, says)
		var coded interface{ ExitCode() int }
		require.ErrorAs(t, err, &coded)
		require.Equal(t, 80, coded.ExitCode())
	}
}

// TestTheWeirThatIsMeasured checks which weir is measured: the one that --weir names, or the one in PATH if none is
// beside the tests.
func TestTheWeirThatIsMeasured(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	_, err := benchTools{}.find()
	require.ErrorContains(t, err, "--weir")
	weir := filepath.Join(dir, "weir")
	require.NoError(t, os.WriteFile(weir, nil, 0o755))
	tools, err := benchTools{}.find()
	require.NoError(t, err)
	require.Equal(t, weir, tools.Weir)
	tools, err = benchTools{Weir: "other"}.find()
	require.NoError(t, err)
	require.Equal(t, "other", tools.Weir)
}

// TestManPagesOfTheBench checks that each command has a page with its flags, and that the hidden command has none.
func TestManPagesOfTheBench(t *testing.T) {
	dir := t.TempDir()
	ctx, err := newParser(new(cli)).Parse([]string{"man", dir})
	require.NoError(t, err)
	require.NoError(t, ctx.Run())
	for page, want := range map[string]string{
		"weir-bench.1": "weir\\-bench\\-guard (1)", "weir-bench-run.1": "\\-\\-repetitions",
		"weir-bench-guard.1": "noise",
	} {
		text, err := os.ReadFile(filepath.Join(dir, page))
		require.NoError(t, err)
		require.Contains(t, string(text), want)
	}
	pages, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, pages, 3)
}

func TestGuardHasDefaults(t *testing.T) {
	base := filepath.Join(t.TempDir(), "weir")
	require.NoError(t, os.WriteFile(base, nil, 0o755))
	var parsed cli
	_, err := newParser(&parsed).Parse([]string{"guard", "--base", base})
	require.NoError(t, err)
	require.Equal(t, base, parsed.Guard.Base)
	require.Equal(t, bench.DefaultPairs, parsed.Guard.Pairs)
	_, err = newParser(new(cli)).Parse([]string{"guard"})
	require.ErrorContains(t, err, "--base")
	parsed.Guard.Scenario = []string{"nothing"}
	require.ErrorIs(t, parsed.Guard.Run(), bench.ErrUnknownName)
}
