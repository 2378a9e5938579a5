package bench

import (
	"bufio"
	"fmt"
	"strconv"
)

// maxIntegers is more than any decision has.
const maxIntegers = 16

// tally counts answers.
type tally struct {
	answers  int64
	admitted int64
	errors   int64
	said     string // the first error
}

func (t *tally) add(other tally) {
	t.answers += other.answers
	t.admitted += other.admitted
	t.errors += other.errors
	if t.said == "" {
		t.said = other.said
	}
}

// readAnswers reads n answers, each of them a decision or an error. Anything else is
// ErrNotADecision.
func readAnswers(r *bufio.Reader, n int) (t tally, err error) {
	for range n {
		line, err := readLine(r)
		if err != nil {
			return t, err
		}
		t.answers++
		switch line[0] {
		case '-':
			t.add(tally{errors: 1, said: string(line[1:])})
		case '*':
			admitted, err := readDecision(r, line[1:])
			if err != nil {
				return t, err
			}
			t.admitted += int64(admitted)
		default:
			return t, fmt.Errorf("%w: %q", ErrNotADecision, line)
		}
	}
	return t, nil
}

// readDecision reads the integers of an array whose length is given, and returns the
// first.
func readDecision(r *bufio.Reader, length []byte) (admitted int, err error) {
	integers, err := strconv.Atoi(string(length))
	if err != nil || integers < 1 || integers > maxIntegers {
		return 0, fmt.Errorf("%w: an array of %q", ErrNotADecision, length)
	}
	for i := range integers {
		line, err := readLine(r)
		if err != nil {
			return 0, err
		}
		if line[0] != ':' || i == 0 && string(line) != ":0" && string(line) != ":1" {
			return 0, fmt.Errorf("%w: %q in it", ErrNotADecision, line)
		}
		if i == 0 {
			admitted = int(line[1] - '0')
		}
	}
	return admitted, nil
}

// readLine returns a line that is not empty, without its end. It is valid until the
// next read.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < len("x\r\n") || line[len(line)-2] != '\r' {
		return nil, fmt.Errorf("%w: %q", ErrNotADecision, line)
	}
	return line[:len(line)-2], nil
}
