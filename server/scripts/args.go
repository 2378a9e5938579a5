package scripts

import (
	"math"
	"strconv"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
)

// ArgKind selects the parser of one script argument. All kinds but argValue become doubles.
type ArgKind byte

const (
	argNumber   ArgKind = 'n'
	argPositive ArgKind = 'p' // a number above 0
	ArgInteger  ArgKind = 'i' // a whole number
	ArgWhole    ArgKind = 'w' // a whole number above 0
	ArgHits     ArgKind = 'h' // a limit whose hits are kept: a whole number from 1 to engine.MaxHits
	ArgTrue     ArgKind = 't' // 1 for the word true, else 0
	ArgOne      ArgKind = '1' // 1 for 1, else 0
	ArgIgnored  ArgKind = '-' // the script does not use it
	argValue    ArgKind = 'v' // bytes
)

// ReadArgs parses arguments of these kinds.
func ReadArgs(kinds string, call *engine.Script, argv [][]byte) (err error) {
	values := call.Values[:0]
	for i, b := range argv {
		if ArgKind(kinds[i]) == argValue {
			values = append(values, b)
			continue
		}
		if call.Args[i], err = readArg(ArgKind(kinds[i]), i, b); err != nil {
			return err
		}
	}
	return nil
}

func readArg(kind ArgKind, i int, b []byte) (float64, error) {
	switch kind {
	case ArgTrue:
		return toNumber(string(b) == "true"), nil
	case ArgOne:
		return toNumber(string(b) == "1"), nil
	case ArgIgnored:
		return 0, nil
	}
	f, err := number(i, b)
	if err != nil {
		return 0, err
	}
	if (kind == ArgInteger || kind == ArgWhole || kind == ArgHits) && f != math.Trunc(f) {
		return 0, limits.Bad(scriptArg(i), "must be a whole number", b)
	}
	if (kind == argPositive || kind == ArgWhole || kind == ArgHits) && f <= 0 {
		return 0, limits.Bad(scriptArg(i), "must be above 0", b)
	}
	if kind == ArgHits && f > engine.MaxHits {
		return 0, limits.Bad(scriptArg(i), "must be at most "+strconv.Itoa(engine.MaxHits), b)
	}
	return f, nil
}

func toNumber(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
