package helm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

const (
	release   = "weir"
	namespace = "limits"
	// notesFile is the text that helm prints after an installation. It contains no object.
	notesFile = "NOTES.txt"
)

// kubernetes is the version for which the tests render the chart. No template reads it, so one version is enough.
var kubernetes = &common.Capabilities{
	KubeVersion: common.KubeVersion{Version: "v1.35.0", Major: "1", Minor: "35"},
	HelmVersion: common.DefaultCapabilities.HelmVersion,
}

// examples are the example values of the chart.
func examples(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("weir/examples/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 5)
	return files
}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load("weir")
	require.NoError(t, err)
	return c
}

func valuesOf(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	values := map[string]any{}
	require.NoError(t, yaml.UnmarshalStrict(text, &values))
	return values
}

// with returns the values of a file with some replaced: "auth.existingSecret", "x".
func with(t *testing.T, file string, over ...any) map[string]any {
	t.Helper()
	values := map[string]any{}
	if file != "" {
		values = valuesOf(t, file)
	}
	for pair := range slices.Chunk(over, 2) {
		at, path := values, strings.Split(pair[0].(string), ".")
		for _, name := range path[:len(path)-1] {
			if _, ok := at[name].(map[string]any); !ok {
				at[name] = map[string]any{}
			}
			at = at[name].(map[string]any)
		}
		at[path[len(path)-1]] = pair[1]
	}
	return values
}

// rendered returns the output of "helm template", by the name of the template. clusters answers the lookups of
// templates; nil finds nothing.
func rendered(t *testing.T, values map[string]any, clusters engine.ClientProvider) (map[string]string, error) {
	t.Helper()
	c := load(t)
	all, err := commonutil.ToRenderValues(
		c, values, common.ReleaseOptions{Name: release, Namespace: namespace, IsInstall: true, Revision: 1}, kubernetes)
	if err != nil {
		return nil, err
	}
	var out map[string]string
	if clusters == nil {
		out, err = engine.Render(c, all)
	} else {
		out, err = engine.RenderWithClientProvider(c, all, clusters)
	}
	texts := map[string]string{}
	for path, text := range out {
		texts[strings.TrimPrefix(path, "weir/templates/")] = text
	}
	return texts, err
}
