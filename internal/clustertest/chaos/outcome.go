package chaos

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
)

// Outcome is the knowledge of a client about the effect of its operation.
type Outcome uint8

const (
	Answered   Outcome = iota // a reply exists: granted or denied
	NotApplied                // certainly without effect
	Unknown                   // it may have taken effect, now or later
	Refused                   // an error reply that no operation of the harness should get
)

func (o Outcome) String() string {
	return [...]string{"answered", "not applied", "unknown", "refused"}[o]
}

// Words for the ways in which no reply comes; error replies go by their own
// first word.
const (
	wordAnswered    = "answered"
	wordUnreachable = "unreachable"
	wordClosed      = "closed"
	wordTimeout     = "timeout"
)

// outcomeOfWord is the contract about error replies: the server's own promise of
// which of them leave no trace. LOADING is Redis' word for a server that has not
// begun to serve.
var outcomeOfWord = map[string]Outcome{
	"TRYAGAIN":    NotApplied,
	"CLUSTERDOWN": NotApplied,
	"MOVED":       NotApplied,
	"OVERLOADED":  NotApplied,
	"LOADING":     NotApplied,
	"UNKNOWN":     Unknown,
}

// classify says what a reply or an error means, and the word it is counted under.
func classify(reply any, err error) (Outcome, string) {
	if err != nil {
		return classifyError(err)
	}
	text, failed := reply.(ErrorReply)
	if !failed {
		return Answered, wordAnswered
	}
	word, _, _ := strings.Cut(string(text), " ")
	if _, told := bookError(text); told {
		return Answered, word
	}
	if outcome, known := outcomeOfWord[word]; known {
		return outcome, word
	}
	return Refused, word
}

func classifyError(err error) (Outcome, string) {
	switch {
	case errors.Is(err, errNotSent):
		return NotApplied, wordUnreachable
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Unknown, wordTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Unknown, wordClosed
	}
	return Unknown, err.Error()
}
