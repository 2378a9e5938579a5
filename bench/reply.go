package bench

import "fmt"

// Reply reads an answer, which is never an error reply. It returns whether the request was admitted, or an error if the
// command does not have such an answer.
type Reply struct {
	Limits bool // a limiter, which must deny at some point
	Read   func(answer) (admitted bool, err error)
}

// decisionReply reads an array of this many elements that begins with allowed, 1 or 0.
func decisionReply(elements int) Reply {
	return flagReply(elements, 1)
}

// limitedReply reads an array that begins with limited: 0 for admitted.
func limitedReply(elements int) Reply {
	return flagReply(elements, 0)
}

func flagReply(elements int, admitted int64) Reply {
	return Reply{Limits: true, Read: func(a answer) (bool, error) {
		if a.kind != '*' || a.elements != elements || a.first[0] != 0 && a.first[0] != 1 {
			return false, a.unexpected()
		}
		return a.first[0] == admitted, nil
	}}
}

// okReply reads +OK, the answer of a command that does not limit.
func okReply() Reply {
	return Reply{Read: func(a answer) (bool, error) {
		if a.kind != '+' || string(a.said) != "OK" {
			return false, a.unexpected()
		}
		return true, nil
	}}
}

// countReply reads an integer above 0, the answer of a command that does not limit.
func countReply() Reply {
	return Reply{Read: func(a answer) (bool, error) {
		if a.kind != ':' || a.first[0] < 1 {
			return false, a.unexpected()
		}
		return true, nil
	}}
}

func (a answer) unexpected() error {
	return fmt.Errorf("%w: %c%s, %d elements, the first %d", ErrNotADecision, a.kind, a.said, a.elements, a.first[0])
}
