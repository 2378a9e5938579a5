package clienttest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The cluster modes of clients in other languages. Their programs are called with
// the client and the addresses of some nodes, connect with the client's defaults
// and say READY. Then each line they read is a JSON list of commands, to be sent
// by the client's generic call, more than one as a pipeline; they answer with a
// line of as many {"reply": ...} or {"error": text, "own": whether it is the
// client's own error and not the server's}. When their input ends they close the
// client, say DONE and end. What the client logs goes to standard error.

// foreignCluster is such a program at work.
type foreignCluster struct{ *conversation }

// inCluster completes a kind of client with how to start it.
func (l language) inCluster(dir string, kind clientKind) clientKind {
	p := program{dir: dir, argv: append(l.cluster[:len(l.cluster):len(l.cluster)], kind.name)}
	var current *conversation
	seen := 0
	kind.callers = 1
	kind.dial = func(t *testing.T, seeds []string) clusterClient {
		current, seen = p.launch(t, seeds), 0
		c := current
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the client's log:\n%s", &c.stderr)
			}
		})
		current.hear("READY")
		return foreignCluster{current}
	}
	kind.complaints = func() []string {
		text := current.stderr.String()[seen:]
		seen += len(text)
		return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	}
	if kind.lost == nil {
		kind.lost = aboutConnections.MatchString
	}
	return kind
}

func (c foreignCluster) send(commands [][]string) []answer {
	answers := make([]answer, len(commands))
	said, err := c.exchange(commands)
	for i := range answers {
		switch {
		case err != nil:
			answers[i].err = serverError(err.Error()) // never allowed
		case said[i].Own:
			answers[i].err = fmt.Errorf("%s", said[i].Error)
		case said[i].Error != "":
			answers[i].err = serverError(said[i].Error)
		default:
			answers[i].reply = said[i].Reply
		}
	}
	return answers
}

// said is an answer as programs write it.
type said struct {
	Reply any
	Error string
	Own   bool
}

func (c foreignCluster) exchange(commands [][]string) (list []said, err error) {
	line, err := json.Marshal(commands)
	if err != nil {
		return nil, err
	}
	if _, err := c.stdin.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("the program has ended: %w", err)
	}
	if !c.stdout.Scan() {
		return nil, fmt.Errorf("the program has ended: %s", &c.stderr)
	}
	decoder := json.NewDecoder(strings.NewReader(c.stdout.Text()))
	decoder.UseNumber()
	if err := decoder.Decode(&list); err != nil || len(list) != len(commands) {
		return nil, fmt.Errorf("the program says %s: %w", c.stdout.Text(), err)
	}
	return list, nil
}

func (c foreignCluster) close() {
	if c.t.Failed() {
		_ = c.cmd.Cancel() // it may wait for ever
		return
	}
	require.NoError(c.t, c.stdin.Close())
	c.hear("DONE")
	assert.NoError(c.t, c.cmd.Wait())
}
