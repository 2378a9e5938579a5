package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestReport checks what a run says: the packages with their times, what runs, failures with their output, and skips
// with the place where they run.
func TestReport(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	r := newReport(&out, func() time.Time { return now })
	r.beat()
	const a, b = "github.com/weir-project/weir/a", "github.com/weir-project/weir/b"
	r.take(event{Action: "start", Package: a})
	r.take(event{Action: "start", Package: b})
	r.take(event{Action: "run", Package: a, Test: "TestSlow"})
	now = now.Add(2 * time.Minute)
	r.beat()
	r.take(event{Action: "output", Package: a, Test: "TestQuiet", Output: "not shown\n"})
	r.take(event{Action: "pass", Package: a, Test: "TestQuiet"})
	r.take(event{Action: "output", Package: a, Test: "TestSlow", Output: "    x_test.go:3: it broke\n"})
	r.take(event{Action: "fail", Package: a, Test: "TestSlow"})
	r.take(event{Action: "fail", Package: a, Elapsed: 120})
	for test, reason := range map[string]string{"TestMeasure": "SKIPPED: only with -long",
		"TestTool": "SKIPPED: a tool is missing", "TestAllocations/one": "the race detector allocates"} {
		r.take(event{Action: "output", Package: b, Test: test, Output: "=== RUN   " + test + "\n"})
		r.take(event{Action: "output", Package: b, Test: test, Output: "    y_test.go:7: " + reason + "\n"})
		r.take(event{Action: "output", Package: b, Test: test, Output: "--- SKIP: " + test + " (0.00s)\n"})
		r.take(event{Action: "skip", Package: b, Test: test})
	}
	r.take(event{Action: "pass", Package: b, Elapsed: 1})
	require.Equal(t, 1, r.finish([]listed{{"only with -long", "make long"}, {"the race detector", "the plain run"}}))
	require.Equal(t, "./b TestAllocations\n", r.plain())
	require.NotContains(t, out.String(), "not shown")
	for _, want := range []string{
		"...  0s: Go compiles; 0 packages are done\n", "...  2m0s: running a for 2m0s (TestSlow), b for 2m0s ()",
		"it broke\n", "fail   120.0s  a  (2m0s since the start)\n", "pass     1.0s  b  (2m0s since the start)\n",
		"skipped b TestMeasure: only with -long; runs: make long\n",
		"SKIPPED b TestTool: a tool is missing; this reason is not on the list of skips\n",
		"FAILED a TestSlow\n", "2 packages in 2m0s: 2 failures, 3 skips, 1 of them not on the list\n",
	} {
		require.Contains(t, out.String(), want)
	}
}

// TestTheListOfSkips checks that the list can be read, and names a place for each reason.
func TestTheListOfSkips(t *testing.T) {
	all, err := readList("../../scripts/skips.txt")
	require.NoError(t, err)
	require.NotEmpty(t, all)
	require.NotNil(t, find(all, "mutations run only with -chaos.mutations"))
	require.Nil(t, find(all, "chromium is missing (on Debian: apt install chromium)"))
}
