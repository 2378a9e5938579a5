package limits

import (
	"errors"
	"strconv"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/quote"
)

// Error says what is wrong with an argument, and what is accepted.
type Error string

func (e Error) Error() string { return string(e) }

// Bad returns an error that names an argument, states the accepted values ("must be ...") and quotes the received
// value.
func Bad(name, accepted string, got []byte) error {
	return Error(name + " " + accepted + ", not " + quote.Text(got))
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
	return duration(name, b, engine.MinGivenNs, "0 or ")
}

// Span parses a duration of at least engine.MinGivenNs. It returns nanoseconds.
func Span(name string, b []byte) (int64, error) { return duration(name, b, engine.MinGivenNs, "") }

// duration parses a duration of at least least, or also 0 if orZero is not empty.
func duration(name string, b []byte, least int64, orZero string) (int64, error) {
	ns, err := engine.ParseDuration(b)
	switch {
	case err != nil:
		return 0, Bad(name, err.Error(), b)
	case ns < least && (ns != 0 || orZero == ""):
		return 0, Bad(name, "must be "+orZero+"at least "+engine.FormatDuration(least), b)
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
