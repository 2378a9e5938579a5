package resp

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDecision(t *testing.T) {
	for _, n := range []int64{0, 1, 9, 10, 42, 99, 100, 357, 999, 1000, 4095, 4096, 99999, 100000, 1234567, 99999999,
		100000000, 1 << 31, 999999999999, 1 << 53, 1<<63 - 1, -1, -1 << 63} {
		var w Wire
		w.Decision(0, n, -n, n, n, n)
		w.Decision(1, 1, 2, 3, 4, n)
		require.Equal(t, fmt.Sprintf("*5\r\n:%d\r\n:%d\r\n:%[1]d\r\n:%[1]d\r\n:%[1]d\r\n"+
			"*6\r\n:1\r\n:2\r\n:3\r\n:4\r\n:%[1]d\r\n", n, -n), string(w.Out))
	}
}

// TestPutDigits covers all values of each half of the digits, which are computed separately.
func TestPutDigits(t *testing.T) {
	for half := range uint64(10_000) {
		for _, n := range []uint64{half, half * 1e4, half + 9999e4, half*1e4 + 9999} {
			if n == 0 {
				continue // putDigits writes numbers above 0 only
			}
			var buf [24]byte
			require.Equal(t, fmt.Sprintf(":%d\r\n", n), string(buf[:putDigits(buf[:], 0, n)]))
		}
	}
}

// BenchmarkDecision measures the reply of five integers, with short and with long integers.
func BenchmarkDecision(b *testing.B) {
	for name, ds := range map[string][2][5]int64{
		"admitted": {{1, 19, 0, 100, 20}, {1, 7, 0, 1200, 20}},
		"denied":   {{0, 0, 3_599_000, 3_599_000, 1}, {0, 0, 812, 1812, 1}},
		"large":    {{1, 999_999, -1, 1e9, 1e6}, {1, 99_999, 0, 99_000, 1e6}},
	} {
		b.Run(name, func(b *testing.B) {
			w := new(Wire)
			var reply Writer = w
			for i := 0; b.Loop(); i++ {
				w.Out = w.Out[:0]
				d := &ds[i&1]
				reply.Decision(0, d[0], d[1], d[2], d[3], d[4])
			}
		})
	}
}
