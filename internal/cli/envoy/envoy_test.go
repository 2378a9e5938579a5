package envoy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/cli/envoy"
)

func write(t *testing.T, dir, name, text string) {
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "shop.yaml", `
domain: shop
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 10, name: basic}
    descriptors:
      - {key: "file", value: "a*", share_threshold: true, shadow_mode: true, quota_mode: true, detailed_metric: true,
         value_to_metric: true, rate_limit: {unit: Day, requests_per_unit: 3, replaces: [{name: basic}, {name: x}]}}
  - {key: "admin\u001b", rate_limit: {unlimited: true}}
`)
	write(t, dir, "web.yaml", "domain: web")
	var out strings.Builder
	require.NoError(t, (&envoy.CheckCmd{Paths: []string{dir}}).Check(&out))
	require.Equal(t, strings.Join([]string{
		"shop.user          10 per minute  name basic",
		"shop.user.file_a*  3 per day      detailed_metric, quota_mode, shadow_mode, share_threshold, " +
			"value_to_metric, replaces basic x",
		"shop.admin\uFFFD        unlimited      ",
		"files: 2, domains: 2, limits: 3", ""}, "\n"), out.String())
	out.Reset()
	require.NoError(t, (&envoy.CheckCmd{Paths: []string{dir}, JSON: true}).Check(&out))
	require.JSONEq(t, `[
		{"path": "shop.user", "requests_per_unit": 10, "unit": "minute", "name": "basic", "replaces": [], "flags": []},
		{"path": "shop.user.file_a*", "requests_per_unit": 3, "unit": "day", "name": "", "replaces": ["basic", "x"],
		 "flags": ["detailed_metric", "quota_mode", "shadow_mode", "share_threshold", "value_to_metric"]},
		{"path": "shop.admin\u001b", "requests_per_unit": 0, "unit": "", "name": "", "replaces": [], "flags": []}]`,
		out.String())

	write(t, dir, "again.yaml", "domain: web")
	require.ErrorContains(t, (&envoy.CheckCmd{Paths: []string{dir}}).Check(&out), "another file has this domain too")
	require.NoError(t, (&envoy.CheckCmd{Paths: []string{dir}, MergeDomains: true}).Check(&out))
	require.Error(t, (&envoy.CheckCmd{Paths: []string{filepath.Join(dir, "absent")}}).Check(&out))
}

// TestExample checks that the example loads, and that it uses the words of the format.
func TestExample(t *testing.T) {
	var out strings.Builder
	require.NoError(t, (&envoy.CheckCmd{Paths: []string{"../../../examples/envoy/ratelimit"}}).Check(&out))
	for _, word := range []string{"web.generic_key_api.remote_address  3 per minute", "replaces free", "name free",
		"unlimited", "detailed_metric, shadow_mode", "share_threshold", "files: 1, domains: 1, limits: 8"} {
		require.Contains(t, out.String(), word)
	}
}
