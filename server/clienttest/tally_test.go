package clienttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// most is the number of units that each limiter admits in total. No test takes as many before takeRest.
const most = int64(1_000_000)

// serverError is an error reply of the server. All other errors are the client's own.
type serverError string

func (e serverError) Error() string { return string(e) }

// answer is what a client returned for one command.
type answer struct {
	reply any
	err   error
}

// numbers returns the integers of a decision.
func (a answer) numbers() (list []int64) {
	values, _ := a.reply.([]any)
	for _, v := range values {
		switch v := v.(type) {
		case int64:
			list = append(list, v)
		case json.Number:
			if n, err := v.Int64(); err == nil {
				list = append(list, n)
			}
		}
	}
	return list
}

// tally records the answers about one limiter, "RL.FIXED key FOREVER most". Each admission takes one unit, so the
// answers name different numbers of remaining units. If the server loses an admission, two answers name the same
// number, or too many units are left at the end.
type tally struct {
	key string

	mu       sync.Mutex
	left     map[int64]bool // the remaining units that the answers named
	doubtful int            // commands that were sent but not acknowledged
	wrong    []string       // answers that must not occur
}

func newTally(key string) *tally { return &tally{key: key, left: map[int64]bool{}} }

func (l *tally) note(a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	five := a.numbers()
	switch {
	case a.err != nil:
		l.doubtful++
	case len(five) != 5 || five[0] != 1 || five[4] != most:
		l.wrong = append(l.wrong, fmt.Sprintf("%s answered %s", l.key, shown(a.reply)))
	case l.left[five[1]]:
		l.wrong = append(l.wrong, fmt.Sprintf("%s has %d left for the second time", l.key, five[1]))
	default:
		l.left[five[1]] = true
	}
}

func (l *tally) unexpected() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.wrong)
}

func (l *tally) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.left)
}

// check compares the answers with left, the units that the cluster has left. The cluster must have counted every
// acknowledged decision. It may also have counted commands that were not acknowledged, and commands that the client
// resent on its own.
func (l *tally) check(t *testing.T, left int64, kind clientKind) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	assert.Empty(t, l.wrong)
	used, acknowledged := most-left, int64(len(l.left))
	assert.GreaterOrEqual(t, used, acknowledged, "%s: counts are lost", l.key)
	if !kind.resends {
		assert.LessOrEqual(t, used, acknowledged+int64(l.doubtful), "%s: counted more often than sent", l.key)
	}
}

// checkExact is check for a limiter whose commands were all resent with the same ID until they were acknowledged. The
// cluster must have counted exactly these decisions.
func (l *tally) checkExact(t *testing.T, left int64) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	assert.Empty(t, l.wrong)
	assert.Equal(t, int64(len(l.left)), most-left, "%s: every token counts once", l.key)
}

// worries counts the errors of clients by their first word, and records the errors that must not occur.
type worries struct {
	mu       sync.Mutex
	seen     map[string]int
	bad      []string
	nodeDies bool // connections may be lost
}

// retriable are the error replies after which callers resend. MOVED is among them: a client returns the last MOVED if
// it has followed several redirects to a leader that is not ready yet.
var retriable = []string{"TRYAGAIN", "CLUSTERDOWN", "UNKNOWN", "MOVED"}

// isRetriable reports whether an error is a retriable error reply.
func isRetriable(err error) bool {
	reply := serverError("")
	if !errors.As(err, &reply) {
		return false
	}
	word, _, _ := strings.Cut(reply.Error(), " ")
	return slices.Contains(retriable, word)
}

// endedByClient is the error of node-redis for commands in flight to a node that leads no slot any more: the client ends
// its connections to such a node.
const endedByClient = "Disconnects client"

func (w *worries) note(err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	word, reply := "connection", serverError("")
	if errors.As(err, &reply) {
		word, _, _ = strings.Cut(reply.Error(), " ")
		if !slices.Contains(retriable, word) {
			w.bad = append(w.bad, err.Error())
		}
	} else if !w.nodeDies && !strings.Contains(err.Error(), endedByClient) {
		w.bad = append(w.bad, err.Error())
	}
	w.seen[word]++
}

// expectDeath sets whether connections may be lost from now on.
func (w *worries) expectDeath(yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodeDies = yes
}

// take returns the number of errors since the last call, by their first word.
func (w *worries) take() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen = map[string]int{}
	return seen
}

func (w *worries) unexpected() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.bad)
}
