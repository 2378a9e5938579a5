package commands

import (
	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/arg"
)

// The arguments that begin an operation, and those that a session remembers.

// op begins an operation on key, at the end of the session's batch.
func (s *Session) op(code engine.OpCode, key []byte) (*engine.Op, error) {
	if err := arg.CheckKey(key); err != nil {
		return nil, err
	}
	if engine.Reserved(key) && code != engine.OpReset && code != engine.OpRefund {
		return nil, arg.ErrReservedKey
	}
	op := s.batch.Next()
	op.Code, op.Key = code, key
	return op, nil
}

// take begins a decision of cost 1.
func (s *Session) take(key []byte, a engine.Algorithm) (*engine.Op, error) {
	op, err := s.op(engine.OpTake, key)
	if err != nil {
		return nil, err
	}
	op.Limit.Algorithm, op.Cost = a, 1
	return op, nil
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

func (s *Session) rateArg(b []byte) (engine.Rate, error) {
	if s.rates.has(b) {
		return s.rates.value, nil
	}
	r, err := arg.Rate(b)
	if err == nil {
		s.rates.keep(b, r)
	}
	return r, err
}

// windowArg reads the length of a window.
func (s *Session) windowArg(b []byte) (int64, error) {
	if s.windows.has(b) {
		return s.windows.value, nil
	}
	ns, err := arg.Span("window", b)
	if err == nil {
		s.windows.keep(b, ns)
	}
	return ns, err
}
