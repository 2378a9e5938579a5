package docker_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// alertRule has the fields of an alert that the tests need.
type alertRule struct{ Alert, Expr string }

func alertRules(t *testing.T) (rules []alertRule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alertRule } }
	b, err := os.ReadFile("prometheus/alerts.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(b, &file))
	for _, g := range file.Groups {
		rules = append(rules, g.Rules...)
	}
	require.NotEmpty(t, rules)
	return rules
}

var (
	metricName = regexp.MustCompile(`\bweir_[a-z_]+`)
	histograms = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// requireMetrics fails if an expression names a metric that is not in docs/metrics.md, because the server does not
// export it.
func requireMetrics(t *testing.T, expr string) {
	t.Helper()
	page, err := os.ReadFile("../docs/metrics.md")
	require.NoError(t, err)
	for _, name := range metricName.FindAllString(expr, -1) {
		listed := strings.Contains(string(page), "\n| `"+name+"` |") ||
			strings.Contains(string(page), "\n| `"+histograms.ReplaceAllString(name, "")+"` | histogram |")
		require.True(t, listed, "%s in %s", name, expr)
	}
}

// tool returns the path of a program from Debian, or skips the test.
func tool(t *testing.T, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("SKIPPED: %s is missing (on Debian: apt install %s)", name, pkg)
	}
	return path
}

func TestAlertsNameMetricsThatExist(t *testing.T) {
	for _, r := range alertRules(t) {
		require.Regexp(t, metricName.String()+`|^up\{`, r.Expr, r.Alert)
		requireMetrics(t, r.Expr)
	}
}

// TestAlertRules checks with promtool that each alert fires and stays quiet as its tests say.
func TestAlertRules(t *testing.T) {
	tests, err := os.ReadFile("prometheus/alerts_test.yaml")
	require.NoError(t, err)
	for _, r := range alertRules(t) {
		require.Contains(t, string(tests), "name: "+r.Alert+"\n")
	}
	promtool := tool(t, "promtool", "prometheus")
	out, err := exec.Command(promtool, "check", "rules", "prometheus/alerts.yaml").CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(promtool, "test", "rules", "prometheus/alerts_test.yaml").CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// dashboard has the fields of Grafana's dashboard that the tests need.
type dashboard struct {
	Panels []struct {
		ID      int
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr string }
	}
	Templating struct{ List []struct{ Definition string } }
}

func readDashboard(t *testing.T) (board dashboard) {
	t.Helper()
	b, err := os.ReadFile("grafana/dashboards/weir.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &board))
	require.NotEmpty(t, board.Panels)
	return board
}

// TestDashboard checks that every panel of the dashboard queries existing metrics, and that no panels overlap.
func TestDashboard(t *testing.T) {
	board := readDashboard(t)
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range board.Panels {
		require.False(t, ids[p.ID], "%s: its id is another's", p.Title)
		ids[p.ID] = true
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				require.Empty(t, taken[[2]int{x, y}], "%s lies on another", p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			requireMetrics(t, target.Expr)
		}
	}
	for _, v := range board.Templating.List {
		requireMetrics(t, v.Definition)
	}
}

// TestComposeMonitoring checks that the mounted files exist, and that compose can read the compose files.
func TestComposeMonitoring(t *testing.T) {
	var file struct {
		Services map[string]struct{ Volumes []string }
	}
	b, err := os.ReadFile("compose.monitoring.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(b, &file))
	for name, service := range file.Services {
		for _, v := range service.Volumes {
			if path, _, _ := strings.Cut(v, ":"); strings.HasPrefix(path, "./") {
				_, err := os.Stat(path)
				require.NoError(t, err, name)
			}
		}
	}
	words := append(compose(t), "-f", "compose.yaml", "-f", "compose.monitoring.yaml", "config", "--quiet")
	cmd := exec.Command(words[0], words[1:]...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
