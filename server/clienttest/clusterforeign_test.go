package clienttest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// This file tests the cluster modes of clients in other languages. Each language has a program for them. Its arguments
// are the client and the addresses of some nodes. The program
//
//   - connects with the client's defaults and prints READY;
//   - reads lines, each a JSON list of commands, and sends the commands with the client's function for any command:
//     several commands as a pipeline;
//   - answers each line with a line: a JSON list with {"reply": ...} or {"error": text, "own": bool} for each command,
//     where own means an error of the client and not of the server;
//   - closes the client at the end of the input, prints DONE and ends.
//
// The log of the client goes to standard error.

// foreignCluster is such a program while it runs.
type foreignCluster struct{ *conversation }

// inCluster completes kind with the functions that start the program in dir and read its log.
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
			answers[i].err = serverError(err.Error()) // an error of the server that no test allows
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

// said is one answer in a line that a program prints.
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
		_ = c.cmd.Cancel() // the program may wait for ever
		return
	}
	require.NoError(c.t, c.stdin.Close())
	c.hear("DONE")
	assert.NoError(c.t, c.cmd.Wait())
}
