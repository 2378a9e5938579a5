package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSentences(t *testing.T) {
	page := "# A heading\n\n" + contentsBegin + "- [Who](#who)\n" + contentsEnd +
		"First one. weir is\nthe `second. One`! [Third](x.md).\n- An item:\n  and more\n- Another\n" +
		"| cell. Next | `a` |\n```\nNo sentence.\n```\nLast"
	got := []string{}
	for _, s := range sentences(page) {
		got = append(got, s.text)
	}
	require.Equal(t, []string{
		"First one.", "weir is the code!", "Third.", "An item: and more", "Another", "cell.", "Next", "code", "Last",
	}, got)
}

func TestProblemsAreFound(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.md")
	for text, want := range map[string]int{
		"The leader replicates the entry.":           0,
		"Whoever asks gets an answer.":               1,
		"Who leads?":                                 0,
		"There is no leader.":                        1,
		"It is slower than that of the leader.":      1,
		"Mend it. Then it takes the road back.":      2,
		strings.Repeat("word ", longestSentence):     0,
		strings.Repeat("word ", longestSentence+1):   1,
		"`Who leads` is code, and so is `the road`.": 0,
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		found, err := problems(name)
		require.NoError(t, err)
		require.Len(t, found, want, text)
	}
}
