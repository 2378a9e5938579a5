package server

import (
	"math"
	"strconv"
)

// maxScriptNumber bounds the numbers a script is given, either way: up to here
// doubles hold every integer.
const maxScriptNumber = 1 << 53

// scriptNumber reads argument i of a script as Lua does, but only in decimal.
func scriptNumber(i int, b []byte) (float64, error) {
	if n, ok := parseInt(b); ok && -maxScriptNumber <= n && n <= maxScriptNumber {
		return float64(n), nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !isDecimal(b) || math.Abs(f) > maxScriptNumber {
		return 0, badArgument(scriptArg(i), "must be a number from -9007199254740992 to 9007199254740992", b)
	}
	return f, nil
}

// scriptArg names argument i of a script as Lua counts.
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
func luaNumber(w *replyWriter, word int64) {
	f := math.Float64frombits(uint64(word))
	switch {
	case math.IsNaN(f):
		w.bulk("nan")
	case math.IsInf(f, 1):
		w.bulk("inf")
	case math.IsInf(f, -1):
		w.bulk("-inf")
	default:
		var room [32]byte
		w.bulkBytes(strconv.AppendFloat(room[:0], f, 'g', 14, 64))
	}
}
