package bench

import "fmt"

// Reply reads an answer: whether the request was admitted, or that the answer is
// not what the command should say. Errors never come here.
type Reply struct {
	Limits bool // a limiter: it must deny sooner or later
	Read   func(answer) (admitted bool, err error)
}

// decisionReply reads an array of so many elements that begins with allowed, 1 or 0.
func decisionReply(elements int) Reply {
	return flagReply(elements, 1)
}

// limitedReply is one that begins with limited: 0 for admitted.
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

// grantedReply reads INCREX's array: the value, and by how much it has grown.
func grantedReply() Reply {
	return Reply{Limits: true, Read: func(a answer) (bool, error) {
		if a.kind != '*' || a.elements != 2 {
			return false, a.unexpected()
		}
		return a.first[1] > 0, nil
	}}
}

// okReply reads +OK, the answer of a command that does not limit at all.
func okReply() Reply {
	return Reply{Read: func(a answer) (bool, error) {
		if a.kind != '+' || string(a.said) != "OK" {
			return false, a.unexpected()
		}
		return true, nil
	}}
}

// anyReply takes everything but an error for an admission: nobody said what the
// answers of a command mean.
func anyReply() Reply {
	return Reply{Read: func(answer) (bool, error) { return true, nil }}
}

func (a answer) unexpected() error {
	return fmt.Errorf("%w: %c%s, %d elements, the first %d", ErrNotADecision, a.kind, a.said, a.elements, a.first[0])
}
