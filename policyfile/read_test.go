package policyfile_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/filewatch"
	"github.com/weir-project/weir/policyfile"
)

const good = `
policies:
  login:
    limits:
      - FIXED 1m 5 FIRST
      - fixed DAY 50 TZ Europe/Berlin
    retry_after: 60s
    reserved: 12.5%
    overrides:
      - key: office:*
        limits: [TOKENBUCKET 5/s 500 MAXWAIT 1s, SLIDING 1d 10000]
      - {key: probe, unlimited: true, ttl: 1h}
  api:
    limits: [SLIDINGCOUNTER 1h 1000]
    shadow: true
    disabled: true
`

func read(t *testing.T, text string) *policyfile.File {
	t.Helper()
	f, err := policyfile.Read(strings.NewReader(text), "test.yaml")
	require.NoError(t, err)
	return f
}

// TestAFileSaysWhatTheCommandSays checks that a loaded file is in force, and that a second load changes nothing.
func TestAFileSaysWhatTheCommandSays(t *testing.T) {
	f := read(t, good)
	table := engine.NewTable(engine.Options{})
	ops, _ := f.Changes(table.Policies(), 1e18)
	require.Len(t, ops, 4)
	out := make([]engine.Decision, len(ops))
	table.DecideAtomic(engine.Stamp{NowNs: 1e18}, ops, out)
	for _, d := range out {
		require.Equal(t, engine.OK, d.Status)
		require.EqualValues(t, 1, d.Allowed)
	}
	login := table.Policies().Get([]byte("login"))
	require.EqualValues(t, 60e9, login.RetryNs)
	require.EqualValues(t, 125, login.Reserved)
	require.Equal(t, engine.FromFirst, login.Limits[0].Limit.Mode)
	require.Equal(t, "Europe/Berlin", login.Limits[1].Zone.Name)
	require.Len(t, login.Overrides, 2)
	require.Equal(t, int64(1e18)+3600e9, login.Overrides[0].UntilNs, "the exact key is tried first")
	require.EqualValues(t, 1e9, login.Overrides[1].Limits[0].WaitNs)
	require.True(t, table.Policies().Get([]byte("api")).Shadow)
	ops, _ = f.Changes(table.Policies(), 1e18)
	require.Empty(t, ops)
	require.Empty(t, read(t, "policies: {}").Policies)
}

func TestABadFileNamesTheLine(t *testing.T) {
	for _, test := range []struct{ change, with, want string }{
		{"FIXED 1m 5 FIRST", "FIXED 1m five",
			"test.yaml:5: policy login: max must be a whole number from 1 to 9007199254740992, not 'five'"},
		{"fixed DAY 50 TZ Europe/Berlin", "fixed DAY 50 TZ Berlin",
			"test.yaml:6: policy login: TZ must be an IANA time zone like UTC or Europe/Berlin, not 'Berlin'"},
		{"FIXED 1m 5 FIRST", "LEAKY 1 1", "test.yaml:5: policy login: LIMIT must be TOKENBUCKET rate burst"},
		{"60s", "soon", "test.yaml:7: policy login: RETRYAFTER must be like 30s"},
		{"12.5%", "100%", "test.yaml:8: policy login: RESERVED must be from 0.1% to 99.9%, like 20%, not '100%'"},
		{"retry_after", "retryafter", `test.yaml:7: policy login has no field "retryafter", did you mean retry_after?`},
		{"shadow: true", "shadow: maybe", `test.yaml:15: must be true or false, not "maybe"`},
		{"ttl: 1h", "ttl: 0", "test.yaml:12: policy login: TTL must be at least 1ms"},
		{"unlimited: true, ttl", "ttl",
			"test.yaml:12: policy login: an override has either limits or 'unlimited: true'"},
		{"api:", "login:", `test.yaml:13: policies has "login" twice`},
		{"  api:", "  a b:", "test.yaml:13: policy a b: policy must be 1 to 64 letters, digits and -_.:, not 'a b'"},
		{"  api:", "  cost:", "test.yaml:13: policy cost: policy must not be an option of RL.CHECK, not 'cost'"},
		{"limits: [SLIDINGCOUNTER 1h 1000]", "limits: 7", "test.yaml:14: policy api: limits is a list"},
		{"    limits: [SLIDINGCOUNTER 1h 1000]\n", "", "test.yaml:13: policy api: it needs limits"},
		{"policies:",
			"domain: web\ndescriptors: [{key: plan, rate_limit: {unit: minute, requests_per_unit: 5}}]\npolicies:",
			"test.yaml:2: this is a file of Envoy's rate limit service"},
		{"policies:", "policy:", `test.yaml:2: the file has no field "policy", only files, owner, policies, tests`},
		{"policies:", "policies: [", "yaml: line"},
	} {
		text := strings.Replace(good, test.change, test.with, 1)
		require.NotEqual(t, good, text)
		_, err := policyfile.Read(strings.NewReader(text), "test.yaml")
		require.ErrorIs(t, err, policyfile.ErrFile)
		require.ErrorContains(t, err, test.want)
	}
	for text, want := range map[string]string{
		"":                                "test.yaml: the file is empty",
		"# policies:\n":                   "test.yaml: the file is empty",
		"policies:\n":                     "test.yaml:1: policies: it has no value",
		"policies:\n  a:\n  limits: []\n": "test.yaml:2: policy a: it has no value",
	} {
		_, err := policyfile.Read(strings.NewReader(text), "test.yaml")
		require.ErrorIs(t, err, policyfile.ErrFile)
		require.ErrorContains(t, err, want, text)
	}
	_, err := policyfile.Open("no such file")
	require.ErrorIs(t, err, policyfile.ErrFile)
}

// TestWhatIsWrittenReadsTheSame checks that Compare finds no difference between a file and the policies of a server
// that loaded it. Read must return the same file from the output of Write.
func TestWhatIsWrittenReadsTheSame(t *testing.T) {
	told := []policyfile.Terms{
		{Name: "api", Limits: []string{"SLIDINGCOUNTER 1h 1000"}, Shadow: true, Disabled: true, Reserved: "0%"},
		{
			Name: "login", Limits: []string{"FIXED 1m 5 FIRST", "FIXED DAY 50 TZ Europe/Berlin"}, RetryAfterMs: 60000,
			Reserved: "12.5%",
			Overrides: []policyfile.Override{
				{Key: "probe", TTLMs: 3600000}, {Key: "ended", TTLMs: 0},
				{Key: "office:*", Limits: []string{"TOKENBUCKET 5/s 500 MAXWAIT 1s", "SLIDING 1d 10000"}, TTLMs: -1},
			},
		},
	}
	require.Empty(t, read(t, good).Compare(told).Steps)
	var b bytes.Buffer
	require.NoError(t, policyfile.Write(&b, "", told))
	require.Empty(t, read(t, b.String()).Compare(told).Steps)

	told[0].Shadow, told[1].Overrides[0].Limits = false, []string{"FIXED 1s 1"}
	require.Equal(t, []policyfile.Step{
		{"login", []string{"OVERRIDE", "login", "probe", "UNLIMITED", "TTL", "1h"}, "login for probe LIMIT FIXED 1s 1",
			"login for probe UNLIMITED"},
		{"api", []string{"SET", "api", "LIMIT", "SLIDINGCOUNTER", "1h", "1000", "SHADOW", "DISABLED"},
			"api LIMIT SLIDINGCOUNTER 1h 1000 DISABLED", "api LIMIT SLIDINGCOUNTER 1h 1000 SHADOW DISABLED"},
	}, read(t, good).Compare(told).Steps)
}

// FuzzRead checks that Read never panics on any file, and that a table accepts the policies which Read returns.
func FuzzRead(f *testing.F) {
	f.Add(good)
	f.Add(tested)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := policyfile.Read(strings.NewReader(text), "fuzz.yaml")
		if err != nil {
			require.ErrorIs(t, err, policyfile.ErrFile)
			return
		}
		ops, _ := file.Changes(engine.NewTable(engine.Options{Shards: 1}).Policies(), 0)
		for _, op := range ops {
			require.True(t, op.Policy.Valid(op.Key))
		}
	})
}

// TestEachTermIsAChange checks that a file which changes any one term of a policy in force changes the policy, and that
// the same file then changes nothing.
func TestEachTermIsAChange(t *testing.T) {
	const was = "policies: {login: {limits: [TOKENBUCKET 10/s 100]}}"
	for _, now := range []string{
		"limits: [TOKENBUCKET 10/s 101]", "limits: [TOKENBUCKET 10/s 100], shadow: true",
		"limits: [TOKENBUCKET 10/s 100], disabled: true", "limits: [TOKENBUCKET 10/s 100], retry_after: 1s",
		"limits: [TOKENBUCKET 10/s 100], reserved: 10%", "limits: [TOKENBUCKET 10/s 100], report: 1m",
		"limits: [TOKENBUCKET 10/s 100], layout: 'rl:{key}:{policy}'",
	} {
		table := engine.NewTable(engine.Options{})
		apply := func(text string) int {
			ops, _ := read(t, text).Changes(table.Policies(), 1e18)
			out := make([]engine.Decision, len(ops))
			table.DecideAtomic(engine.Stamp{NowNs: 1e18}, ops, out)
			for _, d := range out {
				require.Equal(t, engine.OK, d.Status, text)
			}
			return len(ops)
		}
		require.Equal(t, 1, apply(was))
		changed := "policies: {login: {" + now + "}}"
		require.Equal(t, 1, apply(changed), now)
		require.Zero(t, apply(changed), now)
		require.Equal(t, 1, apply(was), "back from "+now)
	}
}

// TestFilesThatAreReadTogether checks that the files of a server may have owners of their own, and no policy in common.
func TestFilesThatAreReadTogether(t *testing.T) {
	file := func(name, text string) filewatch.File { return filewatch.File{Path: name, Data: []byte(text)} }
	a := file("a.yaml", "owner: team-a\npolicies: {login: {limits: [FIXED 1m 1]}}")
	files, err := policyfile.ReadTogether([]filewatch.File{a, file("b.yaml", "policies: {}")})
	require.NoError(t, err)
	require.Len(t, files, 2)
	require.Equal(t, "team-a", files[0].Owner)
	for text, says := range map[string]string{
		"policies:\n  login: {limits: [FIXED 1m 2]}": "b.yaml:2: policy login is also in a.yaml",
		"policies: [":              "bad policy file b.yaml",
		"files: [x]\npolicies: {}": "bad policy file b.yaml: a file with the field 'files' is one of tests",
	} {
		_, err := policyfile.ReadTogether([]filewatch.File{a, file("b.yaml", text)})
		require.ErrorIs(t, err, policyfile.ErrFile)
		require.ErrorContains(t, err, says)
	}
}
