package raftstore

import (
	"errors"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore/internal/failure"
)

// consensus is the Raft library, with the questions that the other parts of a group ask it.
type consensus struct {
	*raft.Raft
	// ended is closed when the library has ended.
	ended chan struct{}
}

// await waits for the Raft library's answer. Its Error method alone is not enough:
// what the library accepts at the moment it shuts down it may never answer.
func (c *consensus) await(f raft.Future) error {
	answer := make(chan error, 1)
	go func() { answer <- f.Error() }()
	select {
	case err := <-answer:
		return err
	case <-c.ended:
		return raft.ErrRaftShutdown
	}
}

// change waits for a change of the configuration, and translates what the library says of it.
func (c *consensus) change(future raft.Future) error {
	err := c.await(future)
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrEnqueueTimeout):
		return failure.ErrTryAgain
	case errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrRaftShutdown):
		return failure.ErrUnknown
	}
	return err
}

// term returns the term this node is in.
func (c *consensus) term() uint64 { return c.CurrentTerm() }

// leader returns the id of the leader, or "".
func (c *consensus) leader() string {
	_, id := c.LeaderWithID()
	return string(id)
}

// servers returns the newest configuration of the cluster that this node knows.
func (c *consensus) servers() []raft.Server {
	future := c.GetConfiguration()
	if future.Error() != nil {
		return nil
	}
	return future.Configuration().Servers
}

// server returns a member of the cluster by its id, or nil.
func (c *consensus) server(id string) *raft.Server { return serverOf(c.servers(), id) }

// voters returns the ids of the members that vote.
func (c *consensus) voters() (ids []string) {
	for _, s := range c.servers() {
		if s.Suffrage == raft.Voter {
			ids = append(ids, string(s.ID))
		}
	}
	return ids
}

// idsOf returns the ids of servers.
func idsOf(servers []raft.Server) (ids []string) {
	for _, s := range servers {
		ids = append(ids, string(s.ID))
	}
	return ids
}

// serverOf returns the server with this id, or nil.
func serverOf(servers []raft.Server, id string) *raft.Server {
	i := slices.IndexFunc(servers, func(s raft.Server) bool { return string(s.ID) == id })
	if i < 0 {
		return nil
	}
	return &servers[i]
}

// serverCalled returns the member with this id, or else the later life of the node
// that was given it.
func (c *consensus) serverCalled(id string) *raft.Server {
	if s := c.server(id); s != nil {
		return s
	}
	servers := c.servers()
	i := slices.IndexFunc(servers, func(s raft.Server) bool { return givenID(string(s.ID)) == id })
	if i < 0 {
		return nil
	}
	return &servers[i]
}
