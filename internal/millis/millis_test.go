package millis

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNoNumberWraps(t *testing.T) {
	const most = math.MaxInt64 / 1_000_000
	for ms, want := range map[int64]time.Duration{
		0: 0, 1: time.Millisecond, -2: -2 * time.Millisecond, most: most * time.Millisecond, most + 1: math.MaxInt64,
		math.MaxInt64: math.MaxInt64, -most - 1: math.MinInt64, math.MinInt64: math.MinInt64,
		213504 * 86400_000: math.MaxInt64, // 213504 days
	} {
		require.Equal(t, want, Duration(ms), ms)
		if want = min(want, Never-1); ms < 0 {
			want = Never
		}
		require.Equal(t, want, Wait(ms), ms)
	}
}

// TestNoOtherConversion checks that the program converts milliseconds by this package alone. Tests, benchmarks and
// examples may have conversions of their own.
func TestNoOtherConversion(t *testing.T) {
	conversion := regexp.MustCompile(`time\.Duration\([^)]*\)\)? ?\* ?time\.Millisecond|Millisecond ?\* ?time\.Duration\(`)
	for _, dir := range []string{"client", "cmd", "httpfields", "internal/cli", "persistence", "raftstore", "server"} {
		root := filepath.Join("../..", dir)
		require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") ||
				strings.Contains(path, "clienttest") {
				return err
			}
			text, err := os.ReadFile(path)
			require.NotRegexp(t, conversion, string(text), path)
			return err
		}))
	}
}
