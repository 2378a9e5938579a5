package arg

import (
	"errors"
	"strconv"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/server/resp"
)

// Errors whose texts clients compare. The texts are identical to Redis' texts.
const (
	ErrSyntax     resp.Error = "ERR syntax error"
	ErrNotInteger resp.Error = "ERR value is not an integer or out of range"
)

// ErrReservedKey rejects a key that only the limiters of policies may have.
const ErrReservedKey resp.Error = "ERR keys that begin with 'policy|' belong to the limiters of policies: use " +
	"RL.CHECK, or choose another key"

// Bad returns an error that names an argument, states the accepted values ("must be ...") and quotes the received
// value.
func Bad(name, accepted string, got []byte) error {
	return resp.Error("ERR " + name + " " + accepted + ", not " + quote.Text(got))
}

// NotInteger returns Redis' error with the name of the argument and the accepted values.
func NotInteger(name, accepted string, got []byte) error {
	return ErrNotInteger + resp.Error(": "+name+" "+accepted+", not "+quote.Text(got))
}

// WrongCount returns Redis' error for a wrong number of arguments, followed by the usage. full is the command in lower
// case with its container.
func WrongCount(full, usage string) error {
	return resp.Error("ERR wrong number of arguments for '" + full + "' command: " + usage)
}

// UnknownSubcommand returns Redis' error for a subcommand that the container parent does not have.
func UnknownSubcommand(parent string, sub []byte) error {
	return resp.Error("ERR unknown subcommand '" + quote.Printable(sub, quote.MaxBytes) +
		"'. Try " + parent + " HELP.")
}

// Fits reports whether n arguments, including the name, match an arity. A negative arity is a minimum.
func Fits(arity, n int) bool {
	if arity >= 0 {
		return n == arity
	}
	return n >= -arity
}

// CheckKey checks the length of a key: 1 to engine.MaxKeyLen bytes, or up to engine.MaxNameLen for the name of a
// limiter of a policy.
func CheckKey(key []byte) error {
	if len(key) == 0 || len(key) > engine.MaxKeyLen && (!engine.Reserved(key) || len(key) > engine.MaxNameLen) {
		return lengthError("key", engine.MaxKeyLen, key)
	}
	return nil
}

// CheckText checks a name of 1 to most bytes.
func CheckText(name string, b []byte, most int) error {
	if len(b) == 0 || len(b) > most {
		return lengthError(name, most, b)
	}
	return nil
}

func lengthError(name string, most int, got []byte) error {
	return resp.Error("ERR " + name + " must be 1 to " + strconv.Itoa(most) + " bytes, not " + strconv.Itoa(len(got)))
}

// Units parses a whole number from least to most.
func Units(name string, b []byte, least, most int64) (int64, error) {
	n, ok := Int(b)
	if !ok || n < least || n > most {
		return 0, Bad(name, "must be a whole number from "+
			strconv.FormatInt(least, 10)+" to "+strconv.FormatInt(most, 10), b)
	}
	return n, nil
}

// Rate parses a rate, like 10/s.
func Rate(b []byte) (engine.Rate, error) {
	const name = "rate"
	r, err := engine.ParseRate(b)
	switch {
	case err == nil:
		return r, nil
	case errors.Is(err, engine.ErrTooLong):
		return r, Bad(name, "must be given per at most 366 days", b)
	default:
		return r, Bad(name, err.Error(), b)
	}
}

// Duration parses a duration of 0 or at least engine.MinGivenNs. It returns nanoseconds.
func Duration(name string, b []byte) (int64, error) {
	ns, err := engine.ParseDuration(b)
	switch {
	case err != nil:
		return 0, Bad(name, err.Error(), b)
	case ns != 0 && ns < engine.MinGivenNs:
		return 0, Bad(name, "must be 0 or at least 1ms", b)
	}
	return ns, nil
}

// Span parses a duration of at least engine.MinGivenNs. It returns nanoseconds.
func Span(name string, b []byte) (int64, error) {
	ns, err := engine.ParseDuration(b)
	switch {
	case err != nil:
		return 0, Bad(name, err.Error(), b)
	case ns < engine.MinGivenNs:
		return 0, Bad(name, "must be at least 1ms", b)
	}
	return ns, nil
}

// OrWords returns an error that names the words which the argument b accepts besides a duration. It returns err itself
// if b is a duration, but out of range.
func OrWords(err error, words, name string, b []byte) error {
	if _, bad := engine.ParseDuration(b); errors.Is(bad, engine.ErrDuration) {
		return Bad(name, bad.Error()+"; or "+words, b)
	}
	return err
}

// Int parses a decimal 64-bit integer without a plus, blanks or trailing characters. It does not allocate.
func Int(b []byte) (int64, bool) {
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

// Is compares an argument with a word in capitals, ignoring case.
func Is(b []byte, word string) bool {
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
