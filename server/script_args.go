package server

import (
	"math"

	"github.com/weir-project/weir/engine"
)

// argKind says how one argument of a script is read. All become doubles.
type argKind byte

const (
	argNumber   argKind = 'n'
	argPositive argKind = 'p' // a number above 0
	argInteger  argKind = 'i' // a whole number
	argWhole    argKind = 'w' // a whole number above 0
	argTrue     argKind = 't' // whether it is the word true
	argOne      argKind = '1' // whether it is 1
	argIgnored  argKind = '-' // the script does not look at it
	argValue    argKind = 'v' // bytes
)

// readArgs reads arguments of these kinds.
func readArgs(kinds string, call *engine.Script, argv [][]byte) (err error) {
	values := call.Values[:0]
	for i, b := range argv {
		if argKind(kinds[i]) == argValue {
			values = append(values, b)
			continue
		}
		if call.Args[i], err = readArg(argKind(kinds[i]), i, b); err != nil {
			return err
		}
	}
	return nil
}

func readArg(kind argKind, i int, b []byte) (float64, error) {
	switch kind {
	case argTrue:
		return toNumber(string(b) == "true"), nil
	case argOne:
		return toNumber(string(b) == "1"), nil
	case argIgnored:
		return 0, nil
	}
	f, err := scriptNumber(i, b)
	if err != nil {
		return 0, err
	}
	if (kind == argInteger || kind == argWhole) && f != math.Trunc(f) {
		return 0, badArgument(scriptArg(i), "must be a whole number", b)
	}
	if (kind == argPositive || kind == argWhole) && f <= 0 {
		return 0, badArgument(scriptArg(i), "must be above 0", b)
	}
	return f, nil
}

func toNumber(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
