package server

import (
	"errors"
	"strconv"

	"github.com/weir-project/weir/engine"
)

// The readers of single arguments. Each names the argument in its error and
// says what is accepted.

// op begins an operation on key, at the end of the session's batch.
func (s *session) op(code engine.OpCode, key []byte) (*engine.Op, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	if engine.Reserved(key) && code != engine.OpReset && code != engine.OpRefund {
		return nil, errReservedKey
	}
	op := s.batch.next()
	op.Code, op.Key = code, key
	return op, nil
}

// take begins a decision of cost 1.
func (s *session) take(key []byte, a engine.Algorithm) (*engine.Op, error) {
	op, err := s.op(engine.OpTake, key)
	if err != nil {
		return nil, err
	}
	op.Limit.Algorithm, op.Cost = a, 1
	return op, nil
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

// memo remembers the last argument of its kind: clients repeat their limits, and
// comparing is cheaper than parsing.
type memo[T any] struct {
	text  [16]byte
	len   int
	value T
}

func (m *memo[T]) has(b []byte) bool { return m.len > 0 && string(b) == string(m.text[:m.len]) }

func (m *memo[T]) keep(b []byte, value T) {
	if len(b) <= len(m.text) {
		m.len, m.value = copy(m.text[:], b), value
	}
}

func (s *session) rateArg(b []byte) (engine.Rate, error) {
	if s.rates.has(b) {
		return s.rates.value, nil
	}
	r, err := parseRate(b)
	if err == nil {
		s.rates.keep(b, r)
	}
	return r, err
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

// windowArg reads the length of a window.
func (s *session) windowArg(b []byte) (int64, error) {
	if s.windows.has(b) {
		return s.windows.value, nil
	}
	ns, err := spanArg("window", b)
	if err == nil {
		s.windows.keep(b, ns)
	}
	return ns, err
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
