package commands

import (
	"errors"
	"strings"

	"github.com/tidwall/redcon"
)

// Local is a client in the process of the server, without a connection. Its commands take
// the way of every client's. It belongs to one goroutine.
type Local struct{ s *Session }

// Local returns a client that nobody had to log in.
func (s *Shared) Local() *Local { return &Local{NewSession(s, &localClient{id: s.LastID.Add(1)})} }

// Close gives back what the client holds.
func (l *Local) Close() { l.s.Close() }

// Do carries out one command. The elements of the reply come in order, those of arrays
// within it as well; an error is what the server answered.
func (l *Local) Do(words ...string) (reply []string, err error) {
	args := make([][]byte, len(words))
	for i, word := range words {
		args[i] = []byte(word)
	}
	l.s.Out = l.s.Out[:0]
	l.s.Do(args)
	l.s.Settle()
	_, resp := redcon.ReadNextRESP(l.s.Out)
	if resp.Type == redcon.Error {
		return nil, errors.New(strings.TrimSpace(string(resp.Data)))
	}
	return elements(resp, nil), nil
}

func elements(r redcon.RESP, all []string) []string {
	if r.Type != redcon.Array {
		return append(all, string(r.Data))
	}
	r.ForEach(func(one redcon.RESP) bool {
		all = elements(one, all)
		return true
	})
	return all
}

// localClient is what stands under the session in place of a connection.
type localClient struct{ id int64 }

func (c *localClient) ID() int64                          { return c.id }
func (*localClient) RemoteAddr() string                   { return "" }
func (*localClient) LocalAddr() string                    { return "" }
func (*localClient) Kill()                                {}
func (*localClient) Push([]byte) bool                     { return false }
func (*localClient) MayBlock()                            {}
func (*localClient) Hold(wait func(gone <-chan struct{})) { wait(nil) }
