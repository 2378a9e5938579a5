package raftstore

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/images"
	"github.com/weir-project/weir/raftstore/internal/membership"
	"github.com/weir-project/weir/raftstore/internal/pipeline"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/internal/transport"
	"github.com/weir-project/weir/raftstore/peer"
)

// What the tests outside the package need of its inside.

// HoldQueue lets nothing more under way, until the next handover has ended.
func (n *Node) HoldQueue() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	n.group.queue.Pause(ctx)
}

// Waiting is how many batches have not been proposed.
func (n *Node) Waiting() int {
	n.group.queue.Mu.Lock()
	defer n.group.queue.Mu.Unlock()
	return len(n.group.queue.Batches)
}

// Format is what the node writes entries in.
func (n *Node) Format() int32 { return n.group.format.Agreed.Load() }

// AgreeOnFormat looks at once what to write entries in.
func (n *Node) AgreeOnFormat() int32 { n.group.format.Agree(); return n.Format() }

// Heard reports whether a member has said how it is.
func (n *Node) Heard(id string) bool { _, ok := n.host.Peers.Last(id); return ok }

// Configuration is the entry of the newest committed configuration.
func (n *Node) Configuration() uint64 { return n.group.fsm.Configuration() }

// GiveVote promotes a member that was seen in a configuration.
func (n *Node) GiveVote(id, addr string, seen uint64) {
	n.group.membership.GiveVote(raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(addr)}, seen)
}

// Ascend begins the reign of a leader once more.
func (n *Node) Ascend() { n.group.leadership.BecomeLeader() }

// TransferBlindly has the Raft library hand leadership over, and does not wait.
func (n *Node) TransferBlindly(id, addr string) {
	n.group.raft.LeadershipTransferToServer(raft.ServerID(id), raft.ServerAddress(addr))
}

// Forwarded is how many batches of other nodes have no answer yet.
func (n *Node) Forwarded() int64 { return n.group.pipeline.Answering.Load() }

// QuietFor is how long nobody must have sent anything before a leader closes.
const QuietFor = pipeline.QuietFor

// LeaderlessPause is how long a leader that cannot serve waits before it tries again.
const LeaderlessPause = timers.LeaderlessPause

// Dispute lets a node doubt its state, or not any more.
func (n *Node) Dispute(doubt bool) { n.group.divergence.UnderWay.Store(doubt) }

// Confirm commits an entry without operations, on a leader.
func (n *Node) Confirm() error {
	r := n.group.leadership.Current.Load()
	if r == nil {
		return failure.ErrNotLeader
	}
	b, _, err := n.group.queue.Add(nil, false, false)
	if err != nil {
		return err
	}
	if <-b.Done; b.Err == nil && n.group.raft.CurrentTerm() != r.Number {
		return failure.ErrTryAgain // another leader answered
	}
	return b.Err
}

// HoldApply keeps the node from applying entries until release is called.
func (n *Node) HoldApply() (release func()) {
	n.group.fsm.Whole.Lock()
	return n.group.fsm.Whole.Unlock
}

// LogEntries is how many entries the log on disk has.
func (n *Node) LogEntries() uint64 {
	first, err := n.group.logs.FirstIndex()
	last, errLast := n.group.logs.LastIndex()
	if err != nil || errLast != nil || last == 0 {
		return 0
	}
	return last - first + 1
}

// SendNewestImage sends a leader's newest image to a member, as the Raft library does.
func (n *Node) SendNewestImage(to string) (success bool, err error) {
	images := images.Store{Images: n.group.images}
	metas, err := images.List()
	if err != nil {
		return false, err
	}
	meta, stream, err := images.Open(metas[0].ID)
	if err != nil {
		return false, err
	}
	defer stream.Close()
	member := n.group.raft.Server(to)
	self := n.group.transport.EncodePeer(raft.ServerID(n.host.Options.NodeID), n.group.transport.LocalAddr())
	request := raft.InstallSnapshotRequest{
		RPCHeader:       raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(n.host.Options.NodeID), Addr: self},
		SnapshotVersion: meta.Version, Term: n.group.raft.CurrentTerm(), Leader: self,
		LastLogIndex: meta.Index, LastLogTerm: meta.Term, Size: meta.Size,
		Configuration: raft.EncodeConfiguration(meta.Configuration), ConfigurationIndex: meta.ConfigurationIndex,
	}
	var response raft.InstallSnapshotResponse
	carrier := transport.Transport{NetworkTransport: n.group.transport, Reach: n.host.Reach}
	err = carrier.InstallSnapshot(member.ID, member.Address, &request, &response, stream)
	return response.Success, err
}

// AskInAs asks the leader to take a node in that is not this one.
func (n *Node) AskInAs(leader, id, addr string) error {
	client := peer.NewClient(n.host.Port, leader, "")
	defer client.Close()
	request, err := json.Marshal(membership.Joining{
		NodeID: id, RaftAddr: addr, Format: n.host.Options.Format, KeepsPromises: true, Invited: true,
	})
	if err != nil {
		return err
	}
	code, answer, err := client.Call(n.host.Ctx, calls.Join, request)
	if err != nil {
		return err
	}
	return calls.OutcomeOf(code, answer)
}
