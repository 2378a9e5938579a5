package commands

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMemoryFigures measures the bytes of the limiters that README.md, docs/operations.md and docs/choosing.md list,
// and looks for the figures there. Every key has 15 bytes, and the uses of a log are a minute apart.
func TestMemoryFigures(t *testing.T) {
	pages := ""
	for _, name := range []string{"../../README.md", "../../docs/operations.md", "../../docs/choosing.md"} {
		page, err := os.ReadFile(name)
		require.NoError(t, err)
		pages += string(page)
	}
	for i, test := range []struct {
		send  string
		times int
		want  int
		rows  []string // with the figure %d
	}{
		{"RL.TOKENBUCKET %s 10/s 100", 1, 47, []string{
			"`RL.TOKENBUCKET` | exact | %d bytes", "bucket, leaky bucket | %d;",
		}},
		{"RL.TOKENBUCKET %s 1/2h 100", 2, 55, []string{"up to %d at rates of a unit an hour or slower"}},
		{"RL.LEAKYBUCKET %s 10/s 100", 1, 47, []string{"`RL.LEAKYBUCKET` | exact | %d bytes"}},
		{"RL.FIXED %s 1h 100", 1, 55, []string{"exact in each window | %d bytes", "| fixed window | %d |"}},
		{"RL.SLIDINGCOUNTER %s 1h 100", 2, 63, []string{"previous window | %d bytes", "window counter | %d |"}},
		{"RL.SLIDING %s 1d 100", 4, 111, []string{"exact | %d bytes for four units", "log | %d for up to four units"}},
		{"RL.SLIDING %s 1d 100", 10, 207, []string{"%d for ten; from a hundred on at most 12 a unit"}},
		{"RL.STRIKE %s 1d 50 1m", 4, 119, []string{"exact | %d bytes for four strikes", "strikes | %d for up to four"}},
		{"RL.STRIKE %s 1d 50 1m", 10, 215, []string{"for up to four, %d for ten"}},
		{"RL.ACQUIRE %s 100 1d", 1, 127, []string{"slots | %d for one;"}},
	} {
		c := defaultClient(t)
		key := fmt.Sprintf("key:%011d", i)
		for use := range test.times {
			if use > 0 {
				c.say("DEBUG CLOCK ADVANCE 60000")
			}
			require.Contains(t, c.say(fmt.Sprintf(test.send, key)), "1 ")
		}
		got, err := strconv.Atoi(c.say("MEMORY USAGE " + key))
		require.NoError(t, err)
		require.Equal(t, test.want, got, test.send)
		for _, row := range test.rows {
			require.True(t, strings.Contains(pages, fmt.Sprintf(row, got)), "no page says "+row, got)
		}
	}
}

// TestMemoryOfManyUnits checks the bounds of a unit of a long log and of a slot, which the same pages state.
func TestMemoryOfManyUnits(t *testing.T) {
	for _, test := range []struct {
		send string
		most int
	}{
		{"RL.SLIDING key:00000000000 365d 1000", 12},
		{"RL.ACQUIRE key:00000000000 1000 365d", 64},
	} {
		c := defaultClient(t)
		for i := range 200 {
			require.Contains(t, c.say(test.send), "1 ")
			c.say("DEBUG CLOCK ADVANCE 86400000")
			if i+1 < 100 {
				continue
			}
			got, err := strconv.Atoi(c.say("MEMORY USAGE key:00000000000"))
			require.NoError(t, err)
			require.LessOrEqual(t, got, test.most*(i+1), "%s, %d units", test.send, i+1)
		}
	}
}
