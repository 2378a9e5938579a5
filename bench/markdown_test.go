package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fullReport has every part of a report.
func fullReport() *Report {
	r := sampleReport()
	r.Judge([]Goal{{"bucket-p128", Rate, "weir", "redis+lua", 12, 0}})
	r.Snapshots = &SnapshotReport{}
	r.Snapshots.summarize(sampleWindows())
	r.Command = []string{"weir-bench", "--dir", "/a b"}
	return r
}

func TestFiguresGoBetweenTheirMarkers(t *testing.T) {
	page := []byte("# Title\n" + figuresBegin + "\nold\n" + figuresEnd + "\nend\n")
	once, err := fullReport().Insert(page)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(once), "# Title\n"+figuresBegin+"\n\nTaken "))
	require.True(t, strings.HasSuffix(string(once), figuresEnd+"\nend\n"))
	require.NotContains(t, string(once), "old")
	require.Contains(t, string(once),
		"| redis+lua | 145k (120k-170k) | 12.50x (10.00x-15.00x) | 7.50µs (7.00µs-8.00µs) |")
	require.Contains(t, string(once), "    weir-bench --dir '/a b'\n")
	require.NotContains(t, string(once), "grow-connections", "it has no goal")
	twice, err := fullReport().Insert(once)
	require.NoError(t, err)
	require.Equal(t, string(once), string(twice))

	for _, page := range []string{"", figuresBegin, figuresEnd + figuresBegin} {
		_, err := fullReport().Insert([]byte(page))
		require.ErrorIs(t, err, ErrNoMarkers)
	}
}
