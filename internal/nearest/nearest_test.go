package nearest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"listen", "listne", 1}, {"get", "set", 1}, {"ca", "abc", 3}, {"join", "jon", 1}} {
		require.Equal(t, c.want, Edits(c.a, c.b), "%s %s", c.a, c.b)
	}
}

func TestNames(t *testing.T) {
	known := []string{"listen", "tls-listen", "max-clients", "max-clients-per-source", "max-memory", "rls", "http", "data-dir", "RL.FIXED"}
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
