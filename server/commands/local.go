package commands

import (
	"context"
	"crypto/x509"
	"slices"

	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
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
	one := s.sessionOf(ctx, remoteAddr, localAddr, u, &reply)
	defer one.Close()
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

// sessionOf returns a session of a user of the HTTP port. Its client follows no redirect to another node.
func (s *Shared) sessionOf(ctx context.Context, remoteAddr, localAddr string, u *acl.User, w resp.Writer) *Session {
	one := NewSession(s, &localClient{s.LastID.Add(1), remoteAddr, localAddr, ctx.Done()}, w)
	one.stays = true
	one.become(u)
	return one
}

// errNeedsSession refuses commands whose effect ends with their session, and those that may wait for long.
var errNeedsSession = lacks(service.RefusesCommand, resp.Error("ERR the REST form does not take this command, "+
	"because it waits, subscribes, changes its connection or is refused in MULTI: use the Redis protocol"), "")

// errRESTTooLong refuses the commands of a request after maxExecBytes of replies.
const errRESTTooLong = resp.Error("ERR the replies of this request are too long: the command did not run")

// needsSession reports whether a request of the REST form may not contain the command.
func (c *command) needsSession() bool { return c.noMulti || c.atOnce || c.Full == "select" }

// Request runs the commands of one request of a user in order, in a new session, and returns the reply to each as
// resp.Values.All does. With atomic they are one transaction; if one of them is refused, or EXEC is, nothing has run
// and the error is returned. Any goroutine may call it.
func (s *Shared) Request(ctx context.Context, remoteAddr, localAddr string, u *acl.User, commands [][][]byte,
	atomic bool) ([]any, error) {
	var reply resp.Values
	one := s.sessionOf(ctx, remoteAddr, localAddr, u, &reply)
	defer one.Close()
	if atomic {
		one.Do([][]byte{[]byte("MULTI")})
		if one.tx == nil { // refused: the commands must not run by themselves
			_, err := reply.Value()
			return nil, err
		}
	}
	for _, args := range commands {
		switch cmd, err := s.table.resolve(args); {
		case err == nil && cmd.needsSession():
			one.DecidePending()
			one.reject(cmd, errNeedsSession)
		case err == nil && reply.Len() > maxExecBytes:
			one.DecidePending()
			one.reject(cmd, errRESTTooLong)
		default:
			one.Do(args)
		}
	}
	one.DecidePending()
	if !atomic {
		return reply.All(), nil
	}
	for _, queued := range reply.All() {
		if err, refused := queued.(resp.Error); refused {
			return nil, err
		}
	}
	reply.Truncate(0)
	one.Do([][]byte{[]byte("EXEC")})
	one.DecidePending()
	replies, err := reply.Value()
	if err != nil {
		return nil, err
	}
	return replies.([]any), nil
}
