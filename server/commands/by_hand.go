package commands

import (
	"context"
	"slices"

	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/resp"
)

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
