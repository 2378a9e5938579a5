package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGrid(t *testing.T) {
	spread := Spread{Median: 2e6, Min: 1e6, Max: 3e6}
	g := grid{Head: []string{"", "rate", "disk", "late"}, Rows: [][]entry{
		{plain("weir"), spread.entry(rate), {}, plain("*!")},
		{plain("redis"), plain("7"), {}, {}},
	}}.withoutEmpty()
	require.Equal(t, []string{"", "rate", "late"}, g.Head, "no row has a disk")

	var text, markdown strings.Builder
	require.NoError(t, g.writeText(&text))
	require.Equal(t, ""+
		"         rate           late\n"+
		"   weir    2M  (1M-3M)    *!\n"+
		"  redis     7               \n", text.String(), "a spread has a column of its own")
	g.markdown(&markdown)
	require.Equal(t, "|  | rate | late |\n|---|---|---|\n| weir | 2M (1M-3M) | \\*! |\n| redis | 7 |  |\n",
		markdown.String())
}
