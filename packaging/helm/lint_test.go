package helm

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"sigs.k8s.io/yaml"
)

// TestLint checks that helm lint finds no problem in any set of example values.
func TestLint(t *testing.T) {
	for _, file := range examples(t) {
		result := lint.RunAll("weir", valuesOf(t, file), namespace, lint.WithKubeVersion(&kubernetes.KubeVersion))
		for _, m := range result.Messages {
			require.Less(t, m.Severity, support.WarningSev, "%s: %v", file, m)
		}
	}
}

// TestThePackageIsWhole checks that the archive of helm package contains the alerts and the dashboard as files. In
// the tree they are symbolic links.
func TestThePackageIsWhole(t *testing.T) {
	c := load(t)
	require.NoError(t, c.Validate())
	require.True(t, chartutil.IsCompatibleRange(c.Metadata.KubeVersion, kubernetes.KubeVersion.Version))
	archive, err := chartutil.Save(c, t.TempDir())
	require.NoError(t, err)
	packed, err := loader.Load(archive)
	require.NoError(t, err)
	files := map[string]string{}
	for _, f := range packed.Files {
		files[f.Name] = string(f.Data)
	}
	for name, source := range map[string]string{
		"files/alerts.yaml":    "../../docker/prometheus/alerts.yaml",
		"files/dashboard.json": "../../docker/grafana/dashboards/weir.json",
	} {
		text, err := os.ReadFile(source)
		require.NoError(t, err)
		require.Equal(t, string(text), files[name], name)
	}
}

// TestMonitoringIsTheRepositorys checks that the chart gives Prometheus and Grafana the same files as docker/.
func TestMonitoringIsTheRepositorys(t *testing.T) {
	o := install(t, valuesOf(t, "weir/examples/three-nodes-monitoring-policies.yaml"))
	text, err := os.ReadFile("../../docker/prometheus/alerts.yaml")
	require.NoError(t, err)
	var alerts struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &alerts))
	require.Len(t, o.rules.Spec.Groups, len(alerts.Groups))
	for i, group := range alerts.Groups {
		require.Len(t, o.rules.Spec.Groups[i].Rules, len(group.Rules))
		for k, want := range group.Rules {
			got := o.rules.Spec.Groups[i].Rules[k]
			require.Equal(t, want.Alert, got.Alert)
			require.Equal(t, want.Expr, got.Expr.StrVal)
			require.Equal(t, want.Annotations, got.Annotations)
		}
	}
	dashboard, err := os.ReadFile("../../docker/grafana/dashboards/weir.json")
	require.NoError(t, err)
	require.JSONEq(t, string(dashboard), o.configs[release+"-dashboard"].Data["weir.json"])
	job := *o.monitor.Spec.Endpoints[0].RelabelConfigs[0].Replacement
	require.True(t, strings.HasPrefix(job, "weir"), "WeirDown asks for jobs like weir.*")
}
