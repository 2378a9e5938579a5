package consensus

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/identity"
)

// Raft wraps the Raft library and adds queries for the other packages of a group.
type Raft struct {
	*raft.Raft
	// Ended is closed by the node after the library has shut down.
	Ended chan struct{}
}

// Await waits for the Raft library's answer, or for the end of the library, which may never answer a request that it
// accepts while it shuts down: the queue of its FSM is dropped.
func (c *Raft) Await(f raft.Future) error {
	c.endWith(f)
	return f.Error()
}

// endWith makes the end of the library end the wait for a future. The library has a field for that, and sets it for
// some requests only. Error is the one that reads it.
func (c *Raft) endWith(f raft.Future) {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return // answered already
	}
	if end := v.Elem().FieldByName("ShutdownCh"); end.IsValid() && end.IsNil() {
		end.Set(reflect.ValueOf(c.Ended))
	}
}

// Outcome returns the outcome of an entry from the library's error, and nil for nil.
func Outcome(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrEnqueueTimeout),
		errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return limiter.ErrTryAgain // refused before it was in any log
	}
	return limiter.ErrUnknownOutcome
}

// Change waits for a configuration change, and returns its outcome, or the reason why the library refuses it.
func (c *Raft) Change(future raft.Future) error {
	err := c.Await(future)
	outcome := Outcome(err)
	switch { // the library has no values for these
	case err == nil:
	case strings.HasPrefix(err.Error(), "configuration changed since "): // another change was first
		return limiter.ErrTryAgain
	case err.Error() == "leadership transfer timeout": // the next leader may still begin
		return limiter.ErrUnknownOutcome
	}
	if outcome == limiter.ErrUnknownOutcome && !errors.Is(err, raft.ErrLeadershipLost) &&
		!errors.Is(err, raft.ErrRaftShutdown) {
		return err
	}
	return outcome
}

// Term returns the term this node is in.
func (c *Raft) Term() uint64 { return c.CurrentTerm() }

// Leader returns the id of the leader, or "".
func (c *Raft) Leader() string {
	_, id := c.LeaderWithID()
	return string(id)
}

// Servers returns the newest configuration of the cluster that this node knows, committed or not. It returns nil if
// the library has ended.
func (c *Raft) Servers() []raft.Server {
	future := c.GetConfiguration()
	if future.Error() != nil {
		return nil
	}
	return future.Configuration().Servers
}

// Server returns a member of the cluster by its id, or nil.
func (c *Raft) Server(id string) *raft.Server { return ServerOf(c.Servers(), id) }

// Voters returns the ids of the members that vote.
func (c *Raft) Voters() (ids []string) {
	for _, s := range c.Servers() {
		if s.Suffrage == raft.Voter {
			ids = append(ids, string(s.ID))
		}
	}
	return ids
}

// IDs returns the ids of servers.
func IDs(servers []raft.Server) (ids []string) {
	for _, s := range servers {
		ids = append(ids, string(s.ID))
	}
	return ids
}

// ServerOf returns the server with this id, or nil.
func ServerOf(servers []raft.Server, id string) *raft.Server {
	i := slices.IndexFunc(servers, func(s raft.Server) bool { return string(s.ID) == id })
	if i < 0 {
		return nil
	}
	return &servers[i]
}

// ServerCalled returns the member with this id, or else a later incarnation of the node with this given id, or else
// nil.
func (c *Raft) ServerCalled(id string) *raft.Server {
	if s := c.Server(id); s != nil {
		return s
	}
	servers := c.Servers()
	i := slices.IndexFunc(servers, func(s raft.Server) bool { return identity.GivenID(string(s.ID)) == id })
	if i < 0 {
		return nil
	}
	return &servers[i]
}
