package server

import (
	"errors"
	"strconv"

	"github.com/weir-project/weir/engine"
)

// Errors of arguments whose texts clients compare with: they are Redis' own.
const (
	errSyntax     replyError = "ERR syntax error"
	errNotInteger replyError = "ERR value is not an integer or out of range"
)

// errReservedKey refuses a key that only a policy may have.
const errReservedKey replyError = "ERR keys that begin with 'policy|' belong to the limiters of policies: decide with RL.CHECK, or choose another key"

// badArgument names an argument, says what is accepted ("must be ...") and
// quotes what was sent.
func badArgument(name, accepted string, got []byte) error {
	return replyError("ERR " + name + " " + accepted + ", not " + quote(got))
}

// notInteger is Redis' own text, and which argument it is about.
func notInteger(name, accepted string, got []byte) error {
	return errNotInteger + replyError(": "+name+" "+accepted+", not "+quote(got))
}

// wrongCount is Redis' own text about a number of arguments, which clients compare with, and
// the usage behind it. full is the command in lower case, with its container.
func wrongCount(full, usage string) error {
	return replyError("ERR wrong number of arguments for '" + full + "' command: " + usage)
}

// unknownSubcommand is Redis' own text.
func unknownSubcommand(parent string, sub []byte) error {
	return replyError("ERR unknown subcommand '" + printable(sub, maxQuotedBytes) + "'. Try " + parent + " HELP.")
}

// fits says whether n arguments, the name included, are right for an arity: as many, or if it
// is negative at least so many.
func fits(arity, n int) bool {
	if arity >= 0 {
		return n == arity
	}
	return n >= -arity
}

func checkKey(key []byte) error {
	if len(key) == 0 || len(key) > engine.MaxKeyLen && (!engine.Reserved(key) || len(key) > engine.MaxNameLen) {
		return lengthError("key", engine.MaxKeyLen, key)
	}
	return nil
}

// checkText checks a name of 1 to most bytes.
func checkText(name string, b []byte, most int) error {
	if len(b) == 0 || len(b) > most {
		return lengthError(name, most, b)
	}
	return nil
}

func lengthError(name string, most int, got []byte) error {
	return replyError("ERR " + name + " must be 1 to " + strconv.Itoa(most) + " bytes, not " + strconv.Itoa(len(got)))
}

// unitsArg reads a whole number in least..most.
func unitsArg(name string, b []byte, least, most int64) (int64, error) {
	n, ok := parseInt(b)
	if !ok || n < least || n > most {
		return 0, badArgument(name, "must be a whole number from "+
			strconv.FormatInt(least, 10)+" to "+strconv.FormatInt(most, 10), b)
	}
	return n, nil
}

func parseRate(b []byte) (engine.Rate, error) {
	const name = "rate"
	r, err := engine.ParseRate(b)
	switch {
	case err == nil:
		return r, nil
	case errors.Is(err, engine.ErrTooLong):
		return r, badArgument(name, "must be given per at most 366 days", b)
	default:
		return r, badArgument(name, err.Error(), b)
	}
}

// durationArg reads a duration that may be zero.
func durationArg(name string, b []byte) (int64, error) {
	ns, err := engine.ParseDuration(b)
	if err != nil {
		return 0, badArgument(name, err.Error(), b)
	}
	return ns, nil
}

// spanArg reads a duration longer than zero.
func spanArg(name string, b []byte) (int64, error) {
	ns, err := durationArg(name, b)
	if err == nil && ns == 0 {
		err = badArgument(name, "must be longer than 0", b)
	}
	return ns, err
}

// orWords adds to the error of a duration which words would have been right.
func orWords(err error, words, name string, b []byte) error {
	if _, bad := engine.ParseDuration(b); errors.Is(bad, engine.ErrDuration) {
		return badArgument(name, bad.Error()+"; or "+words, b)
	}
	return err
}

// parseInt reads a decimal 64-bit integer, with no sign but a minus, no blanks
// and nothing behind it. It does not allocate.
func parseInt(b []byte) (int64, bool) {
	digits := b
	if len(b) > 0 && b[0] == '-' {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > len("9223372036854775808") {
		return 0, false
	}
	var u uint64
	for _, c := range digits {
		if c-'0' > 9 {
			return 0, false
		}
		u = u*10 + uint64(c-'0')
	}
	if len(digits) < len(b) {
		return -int64(u), u <= 1<<63
	}
	return int64(u), u < 1<<63
}

// isWord compares an argument with a word in capitals, whatever its case.
func isWord(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}
