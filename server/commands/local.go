package commands

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tidwall/redcon"

	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/resp"
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

// byHand are the commands that ByHand carries out: what one does about a key.
var byHand = []string{"rl.explain", "rl.reset", "rl.block", "rl.unblock"}

const errNotByHand = resp.Error("ERR the page sends RL.EXPLAIN, RL.RESET, RL.BLOCK and RL.UNBLOCK only")

// ByHand carries out a command that a user sends from the page, in a session of its own,
// and returns the reply in RESP2. Any goroutine may call it.
func (s *Shared) ByHand(ctx context.Context, remoteAddr, localAddr string, u *acl.User, args [][]byte) []byte {
	one := NewSession(s, &handClient{ctx, s.LastID.Add(1), remoteAddr, localAddr})
	defer one.Close()
	one.become(u)
	cmd, err := s.table.resolve(args)
	switch {
	case err != nil:
		one.fail(err)
	case !slices.Contains(byHand, cmd.Full):
		one.fail(errNotByHand)
	default:
		// What a person does by hand is for the log, also what applications do all day.
		if cmd.Write && !cmd.audited && one.allowed(cmd, args) == nil {
			one.audit(cmd, args)
		}
		one.Do(args)
		one.Settle()
	}
	return one.Out
}

// handClient is who sends a command by hand.
type handClient struct {
	ctx           context.Context
	id            int64
	remote, local string
}

func (c *handClient) ID() int64                            { return c.id }
func (c *handClient) RemoteAddr() string                   { return c.remote }
func (c *handClient) LocalAddr() string                    { return c.local }
func (*handClient) Kill()                                  {} // it is over when its command is
func (*handClient) Push([]byte) bool                       { return false }
func (*handClient) MayBlock()                              {}
func (c *handClient) Hold(wait func(gone <-chan struct{})) { wait(c.ctx.Done()) }
