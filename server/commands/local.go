package commands

import (
	"context"
	"crypto/x509"
	"slices"

	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/resp"
)

// Local is a client in the process of the server, without a connection. Its commands take the same path as those of
// every client. It belongs to one goroutine.
type Local struct {
	s     *Session
	reply resp.Values
}

// Local returns a client that has not logged in. It is the user default if that needs no password. addr is its address
// in logs and lists; what a client without one sends is not listed as unsupported.
func (s *Shared) Local(addr string) *Local {
	l := new(Local)
	l.s = NewSession(s, &localClient{id: s.LastID.Add(1), remote: addr}, &l.reply)
	return l
}

// Close releases the resources of the client on the server.
func (l *Local) Close() { l.s.Close() }

// Do runs one command. It returns the elements of the reply in order, including those of nested arrays. The error is
// the error reply of the server.
func (l *Local) Do(words ...string) (reply []string, err error) {
	args := make([][]byte, len(words))
	for i, word := range words {
		args[i] = []byte(word)
	}
	l.reply.Truncate(0)
	l.s.Do(args)
	l.s.DecidePending()
	return l.reply.Texts()
}

// localClient replaces the connection of a session.
type localClient struct {
	id            int64
	remote, local string
	gone          <-chan struct{} // closed when nobody needs the replies any more; nil: never
}

func (c *localClient) ID() int64                             { return c.id }
func (c *localClient) RemoteAddr() string                    { return c.remote }
func (c *localClient) LocalAddr() string                     { return c.local }
func (*localClient) Certificate() *x509.Certificate          { return nil }
func (*localClient) Kill()                                   {} // its owner closes the session
func (*localClient) Push([]byte) bool                        { return false }
func (*localClient) MayBlock()                               {}
func (*localClient) SetAuthed(bool)                          {}
func (c *localClient) Await(wait func(gone <-chan struct{})) { wait(c.gone) }

// byHand are the commands that ByHand runs: the actions of the web page (package httpapi) on a key.
var byHand = []string{"rl.explain", "rl.reset", "rl.block", "rl.unblock"}

const errNotByHand = resp.Error("ERR the page sends RL.EXPLAIN, RL.RESET, RL.BLOCK and RL.UNBLOCK only")

// ByHand runs a command that a user sends from the page, in a new session, and returns the reply as resp.Values.Value
// does. Any goroutine may call it.
func (s *Shared) ByHand(ctx context.Context, remoteAddr, localAddr string, u *acl.User, args [][]byte) (any, error) {
	var reply resp.Values
	one := NewSession(s, &localClient{s.LastID.Add(1), remoteAddr, localAddr, ctx.Done()}, &reply)
	defer one.Close()
	one.become(u)
	cmd, err := s.table.resolve(args)
	switch {
	case err != nil:
		one.fail(err)
	case !slices.Contains(byHand, cmd.Full):
		one.fail(errNotByHand)
	default:
		// The audit log shows every write from the page, even a command that applications send all day.
		if cmd.Write && !cmd.audited && one.allowed(cmd, args) == nil {
			one.audit(cmd, args)
		}
		one.Do(args)
		one.DecidePending()
	}
	return reply.Value()
}
