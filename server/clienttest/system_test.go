package clienttest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// examplesDir has the policy files of whole systems. examples/systems/requirements.md lists the requirements of their documents, one in
// each row.
const examplesDir = "../../docs/examples/"

// system is a server with the policies of one example file, and a client of the server.
type system struct {
	t *testing.T
	*redis.Client
	addr string
}

// startSystem starts a server with an example file.
func startSystem(t *testing.T, file string) *system {
	t.Helper()
	w := startWeir(t, "--policies", examplesDir+file)
	s := &system{t: t, addr: w.addr, Client: redis.NewClient(&redis.Options{Addr: w.addr})}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// send sends a line of words and returns the reply in one line, with the elements of nested arrays.
func (s *system) send(line string) string {
	s.t.Helper()
	reply, err := s.Do(s.t.Context(), anys(strings.Fields(line))...).Result()
	if err != nil {
		return err.Error()
	}
	return oneLine(reply)
}

// says sends a line and requires the reply want. The reply of RL.CHECK is: allowed, remaining, retry time and reset
// time in milliseconds, limit, policy.
func (s *system) says(want, line string) {
	s.t.Helper()
	require.Equal(s.t, want, s.send(line), line)
}

// oneLine formats a reply as its elements in a row.
func oneLine(reply any) string {
	switch v := reply.(type) {
	case []any:
		words := make([]string, len(v))
		for i := range v {
			words[i] = oneLine(v[i])
		}
		return strings.Join(words, " ")
	case map[any]any:
		words := make([]string, 0, len(v))
		for name, value := range v {
			words = append(words, fmt.Sprint(name)+"="+oneLine(value))
		}
		return strings.Join(words, " ")
	case nil:
		return ""
	}
	return fmt.Sprint(reply)
}
