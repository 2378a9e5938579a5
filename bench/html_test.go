package bench

import (
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fullReport has data for every chart.
func fullReport() *Report {
	r := sampleReport()
	rows := r.Scenarios[0].Rows
	for i := range rows {
		for j := range rows[i].Samples {
			rows[i].Samples[j].histogram = newHistogram()
			recordTo(rows[i].Samples[j].histogram, 1e6, 1000)
			rows[i].Samples[j].BytesPerKey = 60
		}
	}
	summarize(rows)
	grown := growing("grow-connections", "connections", bucket(1, 16), []int{1, 10}, setClients, "<weir> & co")
	measured := ScenarioReport{Scenario: grown}
	for _, e := range grown.Entrants {
		row := Row{Label: e.Label, Target: e.Target, Load: e.Load, At: e.At, Samples: rows[0].Samples}
		measured.Rows = append(measured.Rows, row)
	}
	summarize(measured.Rows)
	r.Scenarios = append(r.Scenarios, measured)
	r.Judge([]Goal{{"bucket-p128", Rate, "weir", "redis+lua", 12, 0}})
	snapshots := &SnapshotReport{}
	snapshots.summarize(sampleWindows())
	r.Snapshots = snapshots
	r.Command = []string{"weir-bench", "--dir", "/a b"}
	return r
}

func TestThePageNeedsNothingElse(t *testing.T) {
	var out strings.Builder
	require.NoError(t, fullReport().WriteHTML(&out))
	page := out.String()
	require.NotRegexp(t, regexp.MustCompile(`(?i)(https?:)?//[a-z0-9]`), page, "no other host")
	require.NotRegexp(t, regexp.MustCompile(`(?i)\b(src|href|action|data|xlink:href)\s*=`), page, "no other file")
	require.NotRegexp(t, regexp.MustCompile(`(?i)@import|url\(|<script|<link|<iframe`), page)
	require.Contains(t, page, "prefers-color-scheme: dark")
	require.Contains(t, page, "weir-bench --dir &#39;/a b&#39;")
	require.Contains(t, page, "&lt;weir&gt; &amp; co", "names are text")
	require.Contains(t, page, "<td>145k<small>(120k-170k)</small></td>")
	require.NotContains(t, page, "ZgotmplZ")
	for _, title := range []string{"decisions/s</h3>", "latency by percentile</h3>", "bytes/key</h3>",
		"decisions/s over connections</h3>", "Goals", "Snapshots under load"} {
		require.Contains(t, page, title)
	}
	require.NotRegexp(t, `NaN|Inf`, page)
}

func TestChartsAreWellFormed(t *testing.T) {
	var out strings.Builder
	require.NoError(t, fullReport().WriteHTML(&out))
	pictures := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(out.String(), -1)
	require.Len(t, pictures, 4+4)
	for _, picture := range pictures {
		decoder := xml.NewDecoder(strings.NewReader(picture))
		for {
			_, err := decoder.Token()
			if err == io.EOF {
				break
			}
			require.NoError(t, err, picture)
		}
	}
}

func TestAReportWithoutCurvesOrSpreadHasAPage(t *testing.T) {
	var out strings.Builder
	require.NoError(t, sampleReport().WriteHTML(&out))
	require.NoError(t, (&Report{}).WriteHTML(&out))
	require.NotRegexp(t, `NaN|Inf`, out.String())
}
