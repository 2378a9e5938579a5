package scripts

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLongTextsAreNotRecognised checks that a text beyond MaxBytes is rejected although its SHA-1 is in the table, so
// that no client makes weir hash texts of any length.
func TestLongTextsAreNotRecognised(t *testing.T) {
	for length, found := range map[int]bool{MaxBytes: true, MaxBytes + 1: false} {
		text := []byte(strings.Repeat("a", length))
		sum := sha1.Sum(text)
		sc := &Script{Name: "long", texts: []scriptText{{sha1: hex.EncodeToString(sum[:])}}}
		got, _ := newScriptTable([]*dialect{{scripts: []*Script{sc}}}).OfText(text)
		require.Equal(t, found, got == sc, "%d bytes", length)
	}
}

// TestNumbersOfScriptsAreExact checks that a script takes no number that a double cannot represent exactly, in any
// notation. With a greater number, adding one unit may change nothing.
func TestNumbersOfScriptsAreExact(t *testing.T) {
	for text, ok := range map[string]bool{
		"0": true, "-1.5": true, "9007199254740992": true, "-9007199254740992": true, "9.007199254740991e15": true,
		"9007199254740993": false, "-9007199254740993": false, "9223372036854775807": false, "1e16": false,
		"-1e16": false, "9007199254740993.0": false, "1e308": false, "1e309": false, "0x10": false, "inf": false,
		"nan": false, "": false, "1_0": false,
	} {
		f, err := number(0, []byte(text))
		require.Equal(t, ok, err == nil, "%q", text)
		if !ok {
			require.Zero(t, f)
			require.ErrorContains(t, err, "ARGV[1] must be a number from -9007199254740992 to 9007199254740992")
		}
	}
}
