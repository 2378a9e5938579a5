package clienttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/envoyrls/rules"
)

// TestForeignRateLimitFiles compares the verdicts about files with those of envoyproxy/ratelimit.
func TestForeignRateLimitFiles(t *testing.T) {
	if os.Getenv("WEIRTEST_CLIENTS") == "" {
		t.Skip("SKIPPED: limiter libraries of other languages run with WEIRTEST_CLIENTS=1 (make test-clients)")
	}
	program := ratelimitProgram(t, "config_check_cmd")
	in := func(descriptors string) string { return "domain: d\ndescriptors:\n  - " + descriptors }
	limit := func(limit string) string { return in("{key: k, rate_limit: {" + limit + "}}") }
	const both, neither, thereOnly = "both", "neither", "there only"
	for _, c := range []struct{ accepted, text, second string }{
		{both, shopLimits, apiLimits},
		{neither, shopLimits, shopLimits},
		{both, "domain: d", ""},
		{both, in("{key: k, value: 5, shadow_mode: on}"), ""},
		{both, in("{key: k, value: yes}"), ""},
		{both, in("{key: 'k*', share_threshold: true}"), ""},
		{both, limit("unit: MONTH, requests_per_unit: 1"), ""},
		{both, limit("unit: day"), ""},
		{both, limit("unlimited: true"), ""},
		{both, limit("unlimited: true, requests_per_unit: 3"), ""},
		{both, limit("unit: day, replaces: [{name: other}]"), ""},
		{both, "domain: d\ndescriptors: [{key: a, rate_limit: &l {unit: day}}, {key: b, rate_limit: {<<: *l}}]", ""},
		{neither, "{", ""},
		{neither, "descriptors: []", ""},
		{neither, "domain: d\nlimits: 1", ""},
		{neither, "domain: d\n1: x", ""},
		{neither, "domain: d\ndescriptors: 5", ""},
		{neither, "domain: d\ndescriptors: [5]", ""},
		{neither, in("{value: x}"), ""},
		{neither, in("{key: k, value: 1.5}"), ""},
		{neither, in("{key: k, keys: 1}"), ""},
		{neither, in("{key: k, value: v}\n  - {key: k_v}"), ""},
		{neither, in("{key: k, shadow_mode: maybe}"), ""},
		{neither, in("{key: k, value: v, share_threshold: true}"), ""},
		{neither, limit(""), ""},
		{neither, limit("unit: unknown"), ""},
		{neither, limit("unit: fortnight"), ""},
		{neither, limit("unlimited: true, unit: day"), ""},
		{neither, limit("unit: day, requests_per_unit: -1"), ""},
		{neither, limit("unit: day, requests_per_unit: 4294967296"), ""},
		{neither, limit("unit: day, replaces: [{}]"), ""},
		{neither, limit("unit: day, name: n, replaces: [{name: n}]"), ""},
		{thereOnly, limit("unit: day, shadow_mode: true"), ""},
		{thereOnly, in("{key: k, key: l}"), ""},
		{thereOnly, "domain: d\n---\ndomain: e", ""},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"one.yaml": c.text, "two.yaml": c.second} {
			if text != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
		}
		out, theirs := exec.CommandContext(t.Context(), program, "-config_dir", dir).CombinedOutput()
		files, err := rules.Open([]string{dir})
		require.NoError(t, err)
		_, weir := rules.Parse(files, false)
		require.Equal(t, c.accepted != neither, theirs == nil, "%s\n%s", c.text, out)
		require.Equal(t, c.accepted == both, weir == nil, "%s\n%s", c.text, weir)
	}
}
