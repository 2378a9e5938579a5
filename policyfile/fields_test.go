package policyfile_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/policyfile"
)

// fieldCase is a file without a field and with it. Both are valid.
type fieldCase struct{ without, with string }

// fieldCases has a case for each field that a file accepts, by mapping and field.
var fieldCases = map[string]map[string]fieldCase{
	"the file": {
		"owner":    {"policies: {a: {limits: [FIXED 1s 1]}}", "{owner: team, policies: {a: {limits: [FIXED 1s 1]}}}"},
		"policies": {"owner: team", "{owner: team, policies: {a: {limits: [FIXED 1s 1]}}}"},
		"files":    {"owner: team", "{owner: team, files: [more.yaml]}"},
		"tests":    {"owner: team", "{owner: team, tests: [{name: t, steps: [{check: a b, expect: denied}]}]}"},
	},
	"policy a": {
		"limits":      inPolicy("limits: [FIXED 1s 1]", "limits: [FIXED 1s 1, FIXED 1h 9]"),
		"shadow":      inPolicy("limits: [FIXED 1s 1]", "limits: [FIXED 1s 1], shadow: true"),
		"disabled":    inPolicy("limits: [FIXED 1s 1]", "limits: [FIXED 1s 1], disabled: true"),
		"retry_after": inPolicy("limits: [FIXED 1s 1]", "limits: [FIXED 1s 1], retry_after: 9s"),
		"reserved":    inPolicy("limits: [FIXED 1s 1]", "limits: [FIXED 1s 1], reserved: 20%"),
		"layout":      inPolicy("limits: [FIXED 1s 1]", "limits: [FIXED 1s 1], layout: 'rl:{key}:{policy}'"),
		"report":      inPolicy("limits: [TOKENBUCKET 1/s 1]", "limits: [TOKENBUCKET 1/s 1], report: 1m"),
		"record":      inPolicy("limits: [FIXED 1s 1]", "limits: [FIXED 1s 1], record: true"),
		"overrides":   inPolicy("limits: [FIXED 1s 1]", "limits: [FIXED 1s 1], overrides: [{key: k, unlimited: true}]"),
	},
	"an override": {
		"key":       inOverride("key: k, limits: [FIXED 1s 2]", "key: other, limits: [FIXED 1s 2]"),
		"limits":    inOverride("key: k, limits: [FIXED 1s 2]", "key: k, limits: [FIXED 1s 3]"),
		"unlimited": inOverride("key: k, limits: [FIXED 1s 2]", "key: k, unlimited: true"),
		"ttl":       inOverride("key: k, limits: [FIXED 1s 2]", "key: k, limits: [FIXED 1s 2], ttl: 1h"),
	},
	"a test": {
		"name": {"tests: [{name: t, steps: [{check: a b}]}]", "tests: [{name: u, steps: [{check: a b}]}]"},
		"start": {"tests: [{name: t, steps: [{check: a b}]}]",
			"tests: [{name: t, start: 2024-05-01T00:00:00Z, steps: [{check: a b}]}]"},
		"steps": {"tests: [{name: t, steps: [{check: a b}]}]", "tests: [{name: t, steps: [{check: a c}]}]"},
	},
	"a step":   stepCases(),
	"an event": eventCases(),
}

func inPolicy(without, with string) fieldCase {
	return fieldCase{"policies: {a: {" + without + "}}", "policies: {a: {" + with + "}}"}
}

func inOverride(without, with string) fieldCase {
	return inPolicy("limits: [FIXED 1s 1], overrides: [{"+without+"}]", "limits: [FIXED 1s 1], overrides: [{"+with+"}]")
}

func stepCases() map[string]fieldCase {
	cases := map[string]fieldCase{}
	step := func(field, without, with string) {
		form := "tests: [{name: t, steps: [{%s}]}]"
		cases[field] = fieldCase{fmt.Sprintf(form, without), fmt.Sprintf(form, with)}
	}
	for _, command := range []string{"check", "reserve", "extend", "commit", "cancel", "refund", "reset", "forgive",
		"block", "unblock", "policy"} {
		step(command, "check: x", command+": y")
	}
	for field, value := range map[string]string{"at": "1s", "times": "2", "expect": "allowed", "allowed": "1",
		"granted": "1", "remaining": "1", "retry_after": "1s", "reset_after": "1s", "limit": "1", "by": "a",
		"answer": "b", "error": "ERR", "events": "[]"} {
		step(field, "check: a b", "check: a b, "+field+": "+value)
	}
	step("every", "check: a b, times: 2", "check: a b, times: 2, every: 1s")
	return cases
}

func eventCases() map[string]fieldCase {
	form := "tests: [{name: t, steps: [{check: a b, events: [{kind: %s}]}]}]"
	without := fmt.Sprintf(form, "settled")
	cases := map[string]fieldCase{"kind": {without, fmt.Sprintf(form, "lockout")}}
	for _, field := range []string{"policy", "key", "id", "share", "amount", "used", "limit"} {
		cases[field] = fieldCase{without, fmt.Sprintf(form, "settled, "+field+": 7")}
	}
	return cases
}

// TestEveryFieldHasAnEffect checks each field that a file accepts. The readers name the fields in the error about an
// unknown one, so a new field without a case fails. The files without and with the field differ in what Read returns. A
// field of a policy also changes the policy of a server that has the file without it, by Changes and by Compare.
func TestEveryFieldHasAnEffect(t *testing.T) {
	for what, form := range map[string]string{"the file": "{%s: 1}", "policy a": "policies: {a: {%s: 1}}",
		"an override": "policies: {a: {limits: [FIXED 1s 1], overrides: [{%s: 1}]}}", "a test": "tests: [{%s: 1}]",
		"a step":   "tests: [{name: t, steps: [{%s: 1}]}]",
		"an event": "tests: [{name: t, steps: [{check: a b, events: [{%s: 1}]}]}]"} {
		_, err := policyfile.Read(strings.NewReader(fmt.Sprintf(form, "zzzzzz")), "f")
		names := regexp.MustCompile(`has no field "zzzzzz", only (.*)$`).FindStringSubmatch(err.Error())
		require.NotNil(t, names, err)
		require.Equal(t, slices.Sorted(maps.Keys(fieldCases[what])), strings.Split(names[1], ", "), what)
		for field, c := range fieldCases[what] {
			without, with := read(t, c.without), read(t, c.with)
			require.NotEqual(t, contents(without), contents(with), "%s of %s", field, what)
			_, err := policyfile.Read(strings.NewReader(fmt.Sprintf(form, field+"x")), "f")
			require.ErrorContains(t, err, "did you mean", field)
			if what == "policy a" || what == "an override" {
				changes(t, without, with, field)
			}
		}
	}
}

// contents returns what Read returned, without the lines of the file.
func contents(f *policyfile.File) string {
	text := fmt.Sprintf("%s %v %s", f.Owner, f.Include, inForce(apply(engine.NewTable(engine.Options{}), f)))
	for _, one := range f.Tests {
		text += one.Name + one.Start.String()
		for _, s := range one.Steps {
			s.Line = 0
			text += regexp.MustCompile(`\{\d+ `).ReplaceAllString(fmt.Sprintf("%+v", s), "{")
		}
	}
	return text
}

var fieldsAt = engine.Stamp{NowNs: 1e18}

func apply(table *engine.Table, f *policyfile.File) *engine.Table {
	ops, _ := f.Changes(table.Policies(), fieldsAt.NowNs)
	out := make([]engine.Decision, len(ops))
	table.DecideAtomic(fieldsAt, ops, out)
	return table
}

// inForce describes the policy a of a table.
func inForce(table *engine.Table) string {
	p := table.Policies().Get([]byte("a"))
	if p == nil {
		return ""
	}
	return string((&engine.Policy{Limits: p.Limits, Shadow: p.Shadow, Disabled: p.Disabled, RetryNs: p.RetryNs,
		Reserved: p.Reserved, Layout: p.Layout, ReportNs: p.ReportNs, Record: p.Record, Owner: p.Owner,
		Overrides: p.Overrides}).Append(nil))
}

// changes checks that a server with the first file gets what the second one says, and nothing after that.
func changes(t *testing.T, without, with *policyfile.File, field string) {
	t.Helper()
	table := apply(engine.NewTable(engine.Options{}), without)
	before := inForce(table)
	require.NotEqual(t, before, inForce(apply(table, with)), field)
	ops, _ := with.Changes(table.Policies(), fieldsAt.NowNs)
	require.Empty(t, ops, field)
}

// TestAnExpiryOfAnOverrideIsAChange checks that an override without an expiry gets the expiry of the file, and the
// other way round. An override that has ended is missing.
func TestAnExpiryOfAnOverrideIsAChange(t *testing.T) {
	for _, c := range []struct {
		name  string
		file  string
		ttlMs int64
		steps []policyfile.Step
	}{
		{"ttl is new", "key: k, unlimited: true, ttl: 1h", -1, []policyfile.Step{{Policy: "a",
			Words:  []string{"OVERRIDE", "a", "k", "UNLIMITED", "TTL", "1h"},
			Before: "a for k UNLIMITED", After: "a for k UNLIMITED TTL 1h"}}},
		{"ttl is gone", "key: k, unlimited: true", 60_000, []policyfile.Step{{Policy: "a",
			Words:  []string{"OVERRIDE", "a", "k", "UNLIMITED"},
			Before: "a for k UNLIMITED TTL 1m", After: "a for k UNLIMITED"}}},
		{"time passes", "key: k, unlimited: true, ttl: 1h", 60_000, nil},
	} {
		f := read(t, "policies: {a: {limits: [FIXED 1s 1], overrides: [{"+c.file+"}]}}")
		there := policyfile.Terms{Name: "a", Limits: []string{"FIXED 1s 1"}, Overrides: []policyfile.Override{
			{Key: "k", TTLMs: c.ttlMs}}}
		require.Equal(t, c.steps, f.Compare([]policyfile.Terms{there}).Steps, c.name)
	}
	f := read(t, "policies: {a: {limits: [FIXED 1s 1], overrides: [{key: k, unlimited: true, ttl: 1h}]}}")
	table := apply(engine.NewTable(engine.Options{}), f)
	ops, _ := f.Changes(table.Policies(), fieldsAt.NowNs+3599e9)
	require.Empty(t, ops)
	ops, _ = f.Changes(table.Policies(), fieldsAt.NowNs+3600e9)
	require.Len(t, ops, 1, "the override has ended, so the file sets it again")
}

// TestALineOfLimitsIsOneLimit checks that no term of the policy hides in a limit.
func TestALineOfLimitsIsOneLimit(t *testing.T) {
	for _, more := range []string{"SHADOW", "DISABLED", "RETRYAFTER 5s", "RESERVED 10%", "REPORT 1m", "RECORD",
		"LIMIT FIXED 1h 1", "RESET", "IF 3", "OWNER other"} {
		for _, form := range []string{"limits: ['FIXED 1s 1 %s']",
			"limits: [FIXED 1s 1], overrides: [{key: k, limits: ['FIXED 1s 2 %s']}]"} {
			_, err := policyfile.Read(strings.NewReader("policies: {a: {"+fmt.Sprintf(form, more)+"}}"), "f")
			require.ErrorContains(t, err, "a line of limits is one limit", "%s in %s", more, form)
		}
	}
}
