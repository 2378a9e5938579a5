package packaging_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestTheChartIsOfTheNewestVersion checks that the chart installs the version of the changelog's first section.
func TestTheChartIsOfTheNewestVersion(t *testing.T) {
	text, err := os.ReadFile("../CHANGELOG.md")
	require.NoError(t, err)
	newest := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)$`).FindSubmatch(text)
	require.NotNil(t, newest, "CHANGELOG.md has no section of a version, like ## 0.1.0")
	text, err = os.ReadFile("helm/weir/Chart.yaml")
	require.NoError(t, err)
	var chart struct {
		Version    string
		AppVersion string `yaml:"appVersion"`
	}
	require.NoError(t, yaml.Unmarshal(text, &chart))
	require.Equal(t, string(newest[1]), chart.Version)
	require.Equal(t, string(newest[1]), chart.AppVersion)
}
