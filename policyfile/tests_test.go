package policyfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/policyfile"
)

const tested = `owner: team-a
policies:
  login:
    limits: [FIXED 1m 5]
    overrides: [{key: vip, limits: [FIXED 1m 50]}, {key: guest, limits: [FIXED 1m 1], ttl: 30s}]
  org:
    limits: [FIXED DAY 3 TZ Europe/Berlin]
  free:
    limits: [TOKENBUCKET 1/s 10]
    reserved: 50%
  tpm:
    limits: [TOKENBUCKET 90000/m 90000]
  quota:
    limits: [FIXED FOREVER 2]
  budget:
    limits: [FIXED FOREVER 100 NOTIFY 50% 80%]
    record: true
tests:
  - name: a minute
    steps:
      - {at: 0s, check: login alice, times: 5, expect: allowed, remaining: 0, limit: 5, by: login}
      - {at: 10s, check: login alice, expect: denied, retry_after: 50s, reset_after: 50s}
      - {at: 60s, check: login alice, expect: allowed, remaining: 4}
      - {at: 60s, check: login vip, expect: allowed, limit: 50}
      - {at: 60s, check: login guest, times: 2, expect: allowed}
  - name: a day of 23 hours
    start: 2026-03-29T00:30:00+01:00
    steps:
      - {check: org acme COST 3 login alice, error: ERR}
      - {check: login guest, expect: allowed, limit: 1}
      - {check: org acme login alice COST 3, expect: allowed, by: org, reset_after: 1350m}
      - {at: 1h, check: org acme login bob, expect: denied, by: org, retry_after: 1290m}
      - {check: login bob COST 0, remaining: 5}
      - {check: login guest, expect: allowed, limit: 5}
      - {at: 22h, check: org acme, expect: denied}
      - {at: 1350m, check: org acme, expect: allowed}
  - name: steady traffic
    steps:
      - {check: free a PRIORITY high, times: 200, every: 100ms, allowed: 29}
      - {check: free b COST 20 PARTIAL, granted: 5}
      - {check: quota a, times: 3, allowed: 2, retry_after: never}
      - {check: quota a, reset_after: never}
  - name: holds, blocks and changes
    steps:
      - {reserve: tpm acme 4000 2m ID a, expect: allowed, remaining: 86000, by: a}
      - {commit: a 1250, answer: 88750}
      - {commit: b 1250, error: NOHOLD}
      - {reserve: tpm acme 4000 2m ID c, expect: allowed}
      - {cancel: c, answer: 1}
      - {block: alice 1h REASON abuse, answer: OK}
      - {at: 1m, check: login alice, expect: denied, retry_after: 59m}
      - {unblock: alice, answer: 1}
      - {check: login alice COST 2, expect: allowed}
      - {refund: policy|login|0|alice 1, answer: 4}
      - {reset: policy|login|0|alice, answer: 1}
      - {policy: DISABLE login}
      - {check: login alice, times: 9, expect: allowed}
      - {block: [a b, 1m], answer: OK}
      - {check: [free, a b], expect: denied}
  - name: events
    steps:
      - {reserve: budget acme 60 1m ID a,
         events: [{kind: threshold, key: acme, id: a, share: 50, amount: 060, used: 60}]}
      - {extend: a 10 SEQ 1, events: []}
      - {check: budget acme COST 10}
      - {commit: a 65, events: [{kind: settled, policy: budget, id: a, amount: 65, used: 75, limit: 100}]}
      - {check: budget b COST 40, times: 3, events: [{kind: threshold, share: 50}, {kind: threshold, share: 80}]}
`

func openTests(t *testing.T, text string) (*policyfile.File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return policyfile.OpenTests(path)
}

// TestTestsOfAFile checks that the tests of a file pass, and pass again when they are repeated.
func TestTestsOfAFile(t *testing.T) {
	f, err := openTests(t, tested)
	require.NoError(t, err)
	for range 2 {
		results, err := f.RunTests()
		require.NoError(t, err)
		require.Len(t, results, 5)
		for _, r := range results {
			require.Empty(t, r.Failures, r.Test.Name)
		}
	}
}

// TestWhatATestExpects checks that each unmet expectation is reported with its line.
func TestWhatATestExpects(t *testing.T) {
	for _, c := range []struct{ change, with, expected, came string }{
		{"COST 3, expect: allowed, by: org", "COST 3, expect: denied, by: org", "expect denied", "allowed"},
		{"remaining: 0, limit", "remaining: 1, limit", "remaining 1", "0"},
		{"limit: 50}", "limit: 5}", "limit 5", "50"},
		{"retry_after: 50s", "retry_after: 51s", "retry_after 51s", "50s"},
		{"reset_after: 1350m", "reset_after: never", "reset_after never", "1350m"},
		{"by: org, retry", "by: login, retry", "by login", "org"},
		{"allowed: 29", "allowed: 30", "allowed 30", "29"},
		{"granted: 5", "granted: 6", "granted 6", "5"},
		{"retry_after: never", "retry_after: 1m", "retry_after 1m", "never"},
		{"answer: 88750", "answer: 1", "answer 1", "88750"},
		{"error: NOHOLD", "error: ERR", "error ERR", "NOHOLD"},
		{"commit: b 1250, error: NOHOLD", "commit: b 1250", "an answer", "the error NOHOLD"},
		{"check: quota a, times: 3, allowed: 2", "check: quota a, times: 3, expect: denied", "expect denied",
			"2 of 3 allowed"},
		{"cancel: c, answer: 1", "cancel: c, error: NOHOLD", "error NOHOLD", "no error"},
		{"SEQ 1, events: []", "SEQ 1, events: [{kind: lockout, key: k}]", "events [{kind: lockout, key: k}]", "[]"},
		{"events: [{kind: threshold, share: 50}, {", "events: [{", "events [{kind: threshold, share: 80}]",
			"[{kind: threshold, policy: budget, key: b, share: 50, amount: 40, used: 80, limit: 100}, " +
				"{kind: threshold, policy: budget, key: b, share: 80, "},
		{"[{kind: threshold, share: 50}, {kind: threshold, share: 80}]", "[]", "events []",
			"[{kind: threshold, policy: budget, key: b, share: 50, amount: 40, used: 80, limit: 100}, and 1 more]"},
		{"amount: 65, used", "amount: -65, used",
			"events [{kind: settled, policy: budget, id: a, amount: -65, used: 75, limit: 100}]", "[{kind: settled, "},
		{"used: 75", "used: 65", "events [{kind: settled, policy: budget, id: a, amount: 65, used: 65, limit: 100}]",
			"[{kind: settled, policy: budget, key: acme, id: a, share: 0, amount: 65, used: 75, limit: 100}]"},
	} {
		text := strings.Replace(tested, c.change, c.with, 1)
		require.NotEqual(t, tested, text, c.change)
		f, err := openTests(t, text)
		require.NoError(t, err)
		results, err := f.RunTests()
		require.NoError(t, err)
		var all []policyfile.Failure
		for _, r := range results {
			all = append(all, r.Failures...)
		}
		require.Len(t, all, 1, c.with)
		require.Equal(t, c.expected, all[0].Expected)
		require.True(t, strings.HasPrefix(all[0].Came, c.came), all[0].Came)
		line := 1 + strings.Count(tested[:strings.Index(tested, c.change)], "\n")
		require.Equal(t, line, all[0].Line, c.with)
	}
}

// TestABadTestNamesTheLine checks that the error of a bad test contains its line.
func TestABadTestNamesTheLine(t *testing.T) {
	const head = "policies: {p: {limits: [FIXED 1m 1]}}\ntests:\n"
	const step = "  - name: n\n    steps:\n      - "
	for text, want := range map[string]string{
		"policies: {}\n": "the file has no " +
			"tests; write them below 'tests:'",
		head + "  p: {}\n":                    "test.yaml:3: tests is a list of at most 1000",
		head + "  - steps: [{check: p k}]\n":  "test.yaml:3: a test needs a name",
		head + "  - name: n\n":                `test.yaml:3: test "n": it needs steps`,
		head + "  - name: n\n    steps: []\n": `test.yaml:3: test "n": it needs steps`,
		head + "  - nam: " +
			"n\n": `test.yaml:3: a test has no field "nam", did you mean name?`,
		head + "  - {name: n, start: noon}\n":                   "test.yaml:3: start must be like 2024-01-01T00:00:00Z",
		head + "  - {name: n, start: '1999-01-01T00:00:00Z'}\n": "in the years 2020 to 2099",
		head + step + "{expect: allowed}\n": "test.yaml:5: a step needs a command, one of check, " +
			"reserve",
		head + step + "{chek: p " +
			"k}\n": `test.yaml:5: a step has no field "chek", did you mean check?`,
		head + step + "{check: p k, retry: " +
			"1s}\n": `test.yaml:5: a step has no field "retry", did you mean retry_after?`,
		head + step + "{check: p k, block: k 1m}\n": "test.yaml:5: a step " +
			"must have one command, and this is the second",
		head + step + "{check: p k, expect: " +
			"refused}\n": `test.yaml:5: expect must be allowed or denied; got "refused"`,
		head + step + "{check: p k, remaining: " +
			"-1}\n": `test.yaml:5: remaining must be a whole number; got "-1"`,
		head + step + "{check: p k, retry_after: " +
			"soon}\n": `test.yaml:5: retry_after must be a duration like 50s, or never; got "soon"`,
		head + step + "{check: p k, at: soon}\n": "test.yaml:5: at must be like 500ms",
		head + step + "{check: p k, times: 0}\n": "test.yaml:5: times must be a whole " +
			"number from 1 to 100000",
		head + step + "{check: p k, times: 100001}\n": "test.yaml:5: times must be a whole " +
			"number from 1 to 100000",
		head + step + "{check: p k, every: 1s}\n":                             "test.yaml:5: every goes with times",
		head + step + "{check: p k, at: 1m}\n      - {check: p k, at: 59s}\n": "test.yaml:6: time does not go back",
		head + step + "{check: p k, times: 3, every: 1s}\n      - {check: p k, at: 1s}\n": "test.yaml:6: time " +
			"does not go back: this step is at 1s, but the step before it ends at 2s",
		head + step + "{check: p k, times: 100000, every: 366d}\n":                             "test.yaml:5: times and every make a step of more than 366 days",
		head + "  - {name: n, start: '2099-12-31T00:00:00Z', steps: [{check: p k, at: 1d}]}\n": "test.yaml:3: this step is after the year 2099",
		head + step + "{check: p k, events: 1}\n":                                              "test.yaml:5: events is a list of at most 100",
		head + step + "{check: p k, events: [{key: k}]}\n":                                     `test.yaml:5: an event needs a kind, one of threshold settled lockout`,
		head + step + "{check: p k, events: [{kind: no}]}\n":                                   `test.yaml:5: an event needs a kind, one of threshold settled lockout`,
		head + step + "{check: p k, events: [{kind: settled, used: all}]}\n":                   `test.yaml:5: used must be a whole number; got "all"`,
		head + step + "{check: p k, error: ERR, events: []}\n":                                 "test.yaml:5: a command that answers an error writes no events",
		head + step + "{reset: k, expect: allowed}\n":                                          "test.yaml:5: only check, reserve and extend answer expect",
		head + step + "{check: p k, error: ERR, limit: 5}\n":                                   "test.yaml:5: a command that answers an error has no limit",
		head + step + strings.Repeat("{check: p k, times: 100000}\n      - ", 20) +
			"{check: p k}\n": "test.yaml:25: the tests of a file send at most 2000000 commands",
		"owner: team a\n" + head:                   `test.yaml:1: owner must be 1 to 64 letters, digits and -_.:, and not NONE; got "team a"`,
		"owner: none\n" + head:                     "test.yaml:1: owner must be",
		head + step + "{check: p k}\n---\na: b\n":  "it has a second document",
		head + step + "{check: p k}\nfiles: []\n":  "test.yaml:6: files is a list of 1 to 100",
		head + step + "{check: p k}\nfiles: [x]\n": "no such file",
	} {
		_, err := openTests(t, text)
		require.ErrorContains(t, err, want, text)
		require.ErrorIs(t, err, policyfile.ErrFile)
	}
}

// TestTestsOfSeveralFiles runs one test file against the policies of several files. A server rejects such a file.
func TestTestsOfSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	write("a.yaml", "owner: team-a\npolicies: {a: {limits: [FIXED 1m 1]}}\ntests: [{name: n, steps: [{check: a k, "+
		"expect: denied}]}]\n")
	write("b.yaml", "owner: team-b\npolicies: {b: {limits: [FIXED 1m 2]}}\n")
	path := write("tests.yaml",
		"files: [a.yaml, b.yaml]\ntests: [{name: both, steps: [{check: a k b k, times: 2, allowed: 1, by: a}]}]\n")
	f, err := policyfile.OpenTests(path)
	require.NoError(t, err)
	results, err := f.RunTests()
	require.NoError(t, err)
	require.Len(t, results, 1, "not those of the files it names")
	require.Empty(t, results[0].Failures)
	_, err = policyfile.Open(path)
	require.ErrorContains(t, err,
		"tests.yaml: a file with the field 'files' is one of tests, for 'weir policy test'; name the files "+
			"themselves: a.yaml, b.yaml")
	write("b.yaml", "policies: {b: {limits: [FIXED 1m 2]}, a: {limits: [FIXED 1m 2]}}\n")
	_, err = policyfile.OpenTests(path)
	require.ErrorContains(t, err, "b.yaml:1: policy a is in "+filepath.Join(dir, "a.yaml")+", too")
}
