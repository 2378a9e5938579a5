package server

import (
	"math"
	"strconv"

	"github.com/weir-project/weir/engine"
)

// maxScriptNumber bounds the numbers a script is given, either way: up to here
// doubles hold every integer, and no sum or product leaves their range.
const maxScriptNumber = 1 << 53

// readNumbers reads arguments that are all numbers.
func readNumbers(call *engine.Script, argv [][]byte) (err error) {
	for i, b := range argv {
		if call.Args[i], err = scriptNumber(i, b); err != nil {
			return err
		}
	}
	return nil
}

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

// positive refuses an argument by which a script would divide.
func positive(i int, f float64, got []byte) error {
	if f > 0 {
		return nil
	}
	return badArgument(scriptArg(i), "must be above 0", got)
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
func (s *session) luaNumber(word int64) {
	f := math.Float64frombits(uint64(word))
	switch {
	case math.IsNaN(f):
		s.bulk("nan")
	case math.IsInf(f, 0):
		s.bulk(map[bool]string{true: "inf", false: "-inf"}[f > 0])
	default:
		var room [32]byte
		s.bulkBytes(strconv.AppendFloat(room[:0], f, 'g', 14, 64))
	}
}
