package manpage

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRoff checks that no text is read as a request or an escape of roff.
func TestRoff(t *testing.T) {
	for text, want := range map[string]string{
		"--a b": `\-\-a b`, `a\b`: `a\eb`, ".TH": `\&.TH`, "'x'": `\&'x'`, " a\nb ": "a b",
	} {
		require.Equal(t, want, roff(text))
	}
	require.Equal(t, "run it", lowerFirst(firstSentence("Run it. Then stop; or not.")))
}
