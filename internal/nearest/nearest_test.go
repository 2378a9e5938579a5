package nearest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "ab", 2}, {"ab", "", 2}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"listen", "listne", 1},
		{"get", "set", 1}, {"ca", "abc", 3}, {"join", "jon", 1}, {"abcdef", "uvwxyz", 3},
	} {
		require.Equal(t, c.want, edits(c.a, c.b), "%s %s", c.a, c.b)
	}
}

// TestEditsAreThoseOfTheWholeTable checks that edits returns the distance of the whole table, up to tooMany.
func TestEditsAreThoseOfTheWholeTable(t *testing.T) {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 0, 9, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if n := rapid.IntRange(0, len(a)).Draw(t, "same"); rapid.Bool().Draw(t, "alike") {
			b = a[:n] + b[min(n, len(b)):]
		}
		require.Equal(t, min(tooMany, allEdits(a, b)), edits(a, b), "%q %q", a, b)
	})
}

// allEdits returns the optimal string alignment distance by the table of the textbook.
func allEdits(a, b string) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
		for j := range table[i] {
			switch {
			case i == 0 || j == 0:
				table[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				table[i][j] = table[i-1][j-1]
			default:
				table[i][j] = 1 + min(table[i-1][j-1], table[i-1][j], table[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				table[i][j] = min(table[i][j], table[i-2][j-2]+1)
			}
		}
	}
	return table[len(a)][len(b)]
}

// TestNamesAllocateNothingForEachName bounds the allocations, because a client may send misspelled names as fast as
// it can.
func TestNamesAllocateNothingForEachName(t *testing.T) {
	var known []string
	for i := range 256 {
		known = append(known, fmt.Sprintf("abcdefghijklmno%03dqrstuvwxyzabc", i))
	}
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() { Names("xbcdefghijklmno999qrstuvwxyzabz", known) }), 1.0)
}

func TestNames(t *testing.T) {
	known := []string{"listen", "tls-listen", "max-clients", "max-clients-per-source", "max-memory", "rls", "http",
		"data-dir", "RL.FIXED"}
	for _, c := range []struct {
		word string
		want []string
	}{
		{"lisen", []string{"listen"}},
		{"LISTNE", []string{"listen"}},
		{"max-client", []string{"max-clients"}},
		{"max-cl", []string{"max-clients", "max-clients-per-source"}},
		{"data_dir", []string{"data-dir"}},
		{"rl", nil},
		{"tls", []string{"rls"}},
		{"fixed", []string{"RL.FIXED"}},
		{"port", nil},
		{"", nil},
	} {
		require.Equal(t, c.want, Names(c.word, known), c.word)
	}
}
