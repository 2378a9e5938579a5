package scripts

import (
	"math"
	"strconv"

	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/resp"
)

// MaxNumber bounds the absolute value of a script's numbers. Doubles represent every integer up to it. A number with a
// fraction or an exponent must be less, because a text beyond MaxNumber may round to it.
const MaxNumber = 1 << 53

// number parses argument i of a script as Lua does, but only in decimal.
func number(i int, b []byte) (float64, error) {
	if n, ok := limits.Int(b); ok && -MaxNumber <= n && n <= MaxNumber {
		return float64(n), nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !isDecimal(b) || math.Abs(f) >= MaxNumber {
		return 0, limits.Bad(scriptArg(i), "must be a number from -9007199254740992 to 9007199254740992", b)
	}
	return f, nil
}

// scriptArg names argument i of a script, counted from 1 as in Lua.
func scriptArg(i int) string { return "ARGV[" + strconv.Itoa(i+1) + "]" }

func isDecimal(b []byte) bool {
	for _, c := range b {
		if c-'0' > 9 && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return false
		}
	}
	return true
}

// luaNumber writes the double with these bits as Lua's tostring does, %.14g.
func luaNumber(w resp.Reply, word int64) {
	f := math.Float64frombits(uint64(word))
	switch {
	case math.IsNaN(f):
		w.Bulk("nan")
	case math.IsInf(f, 1):
		w.Bulk("inf")
	case math.IsInf(f, -1):
		w.Bulk("-inf")
	default:
		w.Float(f, 14)
	}
}
