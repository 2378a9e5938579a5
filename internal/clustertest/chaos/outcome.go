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

// notYetKnown is in the answer of a node that has just started, and changes nothing.
const notYetKnown = "not every node of the cluster is known to support this"

func (o Outcome) String() string {
	return [...]string{"answered", "not applied", "unknown", "refused"}[o]
}

// These words name the cases without a reply. An error reply is named by its own first word.
const (
	wordAnswered    = "answered"
	wordUnreachable = "unreachable"
	wordClosed      = "closed"
	wordTimeout     = "timeout"
)

// outcomeOfWord is the contract on error replies: the server promises which of them have no effect. LOADING is Redis'
// word for a server that does not serve yet.
var outcomeOfWord = map[string]Outcome{
	"TRYAGAIN":    NotApplied,
	"CLUSTERDOWN": NotApplied,
	"MOVED":       NotApplied,
	"OVERLOADED":  NotApplied,
	"LOADING":     NotApplied,
	"UNKNOWN":     Unknown,
}

// classify returns the meaning of a reply or an error, and the word under which it is counted.
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
	if strings.Contains(string(text), notYetKnown) {
		return NotApplied, word
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
