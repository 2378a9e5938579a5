package docker_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestRateLimitNames checks that the recording rules read existing metrics, and with promtool that each recorded name
// has its value.
func TestRateLimitNames(t *testing.T) {
	var file struct {
		Groups []struct {
			Rules []struct{ Record, Expr string }
		}
	}
	text, err := os.ReadFile("prometheus/ratelimit.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &file))
	tests, err := os.ReadFile("prometheus/ratelimit_test.yaml")
	require.NoError(t, err)
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			require.Regexp(t, metricName, r.Expr, r.Record)
			requireMetrics(t, r.Expr)
			require.Contains(t, string(tests), r.Record)
		}
	}
	promtool := tool(t, "promtool", "prometheus")
	out, err := exec.Command(promtool, "check", "rules", "prometheus/ratelimit.yaml").CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(promtool, "test", "rules", "prometheus/ratelimit_test.yaml").CombinedOutput()
	require.NoError(t, err, "%s", out)
}
