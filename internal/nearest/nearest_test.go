package nearest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"listen", "listne", 2}, {"join", "jon", 1}} {
		require.Equal(t, c.want, Edits(c.a, c.b), "%s %s", c.a, c.b)
	}
}

func TestNames(t *testing.T) {
	known := []string{"listen", "tls-listen", "max-clients", "max-clients-per-source", "max-memory", "rls", "http", "data-dir"}
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
		{"port", nil},
		{"", nil},
	} {
		require.Equal(t, c.want, Names(c.word, known), c.word)
	}
}
