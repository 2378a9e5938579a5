package bench

import "fmt"

// Reply reads an answer: whether the request was admitted, or that the answer is
// not what the command should say.
type Reply struct {
	Limits bool // a limiter: it must deny sooner or later
	Read   func(reply any) (admitted bool, err error)
}

// decisionReply reads an array that begins with allowed, remaining and
// retry_after_ms, and has so many integers.
func decisionReply(integers int) Reply {
	return Reply{Limits: true, Read: func(reply any) (bool, error) {
		array, ok := reply.([]any)
		if !ok || len(array) != integers {
			return false, fmt.Errorf("%w: %v", ErrNotADecision, reply)
		}
		for _, element := range array {
			if _, ok := element.(int64); !ok {
				return false, fmt.Errorf("%w: %v", ErrNotADecision, reply)
			}
		}
		allowed := array[0].(int64)
		if allowed != 0 && allowed != 1 {
			return false, fmt.Errorf("%w: allowed is %d", ErrNotADecision, allowed)
		}
		return allowed == 1, nil
	}}
}

// okReply reads +OK, the answer of a command that does not limit at all.
func okReply() Reply {
	return Reply{Read: func(reply any) (bool, error) {
		if reply != "OK" {
			return false, fmt.Errorf("%w: %v", ErrNotADecision, reply)
		}
		return true, nil
	}}
}
