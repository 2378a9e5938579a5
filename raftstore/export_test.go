package raftstore

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/images"
	"github.com/weir-project/weir/raftstore/internal/membership"
	"github.com/weir-project/weir/raftstore/internal/pipeline"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/internal/transport"
	"github.com/weir-project/weir/raftstore/peer"
)

// These functions and methods give external tests access to internal state.

// StatusTimeout is timers.StatusTimeout.
const StatusTimeout = timers.StatusTimeout

// OpenAlone opens a group on its host, or on a host of its own, which ends with the group.
func OpenAlone(o Options) (*Node, error) { return OpenLosing(o, nil) }

// OpenLosing is OpenAlone for a group whose entries to some addresses are lost.
func OpenLosing(o Options, loses func(addr string) bool) (*Node, error) {
	o.Groups = max(o.Groups, 1)
	closeHost := func() error { return nil }
	if o.Host == nil {
		o.Host = host.NewHost(&o)
		closeHost = o.Host.Close
	}
	if err := o.Complete(); err != nil {
		return nil, errors.Join(err, closeHost())
	}
	n := newNode(o)
	err := n.load()
	if err == nil {
		n.transport = lossy{n.transport, loses}
		n.makeParts()
		err = n.openRaft()
	}
	closeLogs := n.closeLogs
	n.closeLogs = func() error { return errors.Join(closeLogs(), closeHost()) }
	if err != nil {
		return nil, errors.Join(err, n.release())
	}
	n.start()
	return n, nil
}

// lossy is a transport that loses entries.
type lossy struct {
	carrier
	loses func(addr string) bool
}

// AppendEntries implements raft.Transport.
func (l lossy) AppendEntries(id raft.ServerID, at raft.ServerAddress, args *raft.AppendEntriesRequest,
	resp *raft.AppendEntriesResponse) error {
	if l.loses != nil && len(args.Entries) > 0 && l.loses(string(at)) {
		return raft.ErrPipelineShutdown
	}
	return l.carrier.AppendEntries(id, at, args, resp)
}

// HoldQueue holds back all batches until the next transfer of leadership has ended.
func (n *Node) HoldQueue() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	n.queue.Pause(ctx)
}

// Waiting returns the number of batches that have not been proposed.
func (n *Node) Waiting() int {
	n.queue.Mu.Lock()
	defer n.queue.Mu.Unlock()
	return len(n.queue.Batches)
}

// Format returns the form of entries that the node writes.
func (n *Node) Format() int32 { return n.format.Agreed.Load() }

// Written returns the newest form of the entries in the log.
func (n *Node) Written() byte { return n.fsm.Written() }

// AgreeOnFormat determines the form of entries at once.
func (n *Node) AgreeOnFormat() int32 { n.format.Agree(); return n.Format() }

// Heard reports whether a member has sent a status.
func (n *Node) Heard(id string) bool { _, ok := n.own.Peers.Last(id); return ok }

// Configuration returns the log index of the newest committed configuration.
func (n *Node) Configuration() uint64 { return n.fsm.Configuration() }

// GiveVote promotes a member if the configuration is still the one at log index seen.
func (n *Node) GiveVote(id, addr string, seen uint64) {
	n.membership.GiveVote(raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(addr)}, seen)
}

// BecomeLeader begins the leadership of an elected node once more.
func (n *Node) BecomeLeader() { n.leadership.BecomeLeader() }

// TransferBlindly makes the Raft library transfer leadership, and does not wait.
func (n *Node) TransferBlindly(id, addr string) {
	n.raft.LeadershipTransferToServer(raft.ServerID(id), raft.ServerAddress(addr))
}

// Forwarded returns the number of batches of other nodes without an answer.
func (n *Node) Forwarded() int64 { return n.pipeline.Answering.Load() }

// QuietFor is how long a closing leader waits after the last forwarded batch.
const QuietFor = pipeline.QuietFor

// LeaderlessPause is the pause of a leader that cannot serve before it tries again.
const LeaderlessPause = timers.LeaderlessPause

// Dispute begins or ends a divergence check of the node.
func (n *Node) Dispute(doubt bool) { n.divergence.UnderWay.Store(doubt) }

// Confirm commits an entry without operations. It returns ErrTryAgain unless this node leads.
func (n *Node) Confirm() error {
	r := n.leadership.Current.Load()
	if r == nil {
		return limiter.ErrNotLeader
	}
	b, _, err := n.queue.Add(nil, false, false)
	if err != nil {
		return err
	}
	if <-b.Done; b.Err == nil && n.raft.CurrentTerm() != r.Number {
		return limiter.ErrTryAgain // another leader answered
	}
	return b.Err
}

// HoldApply keeps the node from applying entries until release is called.
func (n *Node) HoldApply() (release func()) {
	n.fsm.Whole.Lock()
	return n.fsm.Whole.Unlock
}

// LogEntries returns the number of entries in the log on disk.
func (n *Node) LogEntries() uint64 {
	first, err := n.logs.FirstIndex()
	last, errLast := n.logs.LastIndex()
	if err != nil || errLast != nil || last == 0 {
		return 0
	}
	return last - first + 1
}

// SendNewestImage sends a leader's newest image to a member, as the Raft library does.
func (n *Node) SendNewestImage(to string) (success bool, err error) {
	images := images.Store{Images: n.images}
	metas, err := images.List()
	if err != nil {
		return false, err
	}
	meta, stream, err := images.Open(metas[0].ID)
	if err != nil {
		return false, err
	}
	defer stream.Close()
	member := n.raft.Server(to)
	self := n.transport.EncodePeer(raft.ServerID(n.own.Options.NodeID), n.transport.LocalAddr())
	request := raft.InstallSnapshotRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(n.own.Options.NodeID),
			Addr: self},
		SnapshotVersion: meta.Version, Term: n.raft.CurrentTerm(), Leader: self,
		LastLogIndex: meta.Index, LastLogTerm: meta.Term, Size: meta.Size,
		Configuration: raft.EncodeConfiguration(meta.Configuration), ConfigurationIndex: meta.ConfigurationIndex,
	}
	var response raft.InstallSnapshotResponse
	carrier := transport.Transport{Carrier: n.transport, Reach: n.own.Reach}
	err = carrier.InstallSnapshot(member.ID, member.Address, &request, &response, stream)
	return response.Success, err
}

// AskInAs asks the leader to add a node with this id and address, on behalf of another node than this one.
func (n *Node) AskInAs(leader, id, addr string) error {
	client := peer.NewClient(n.own.Port, leader, "")
	defer client.Close()
	request, err := json.Marshal(membership.Joining{
		NodeID: id, RaftAddr: addr, Format: n.own.Options.Format, KeepsPromises: true, Invited: true,
	})
	if err != nil {
		return err
	}
	code, answer, err := client.Call(n.own.Ctx, calls.Join, request)
	if err != nil {
		return err
	}
	return calls.OutcomeOf(code, answer)
}

// EventsBound returns the bound of the log of events in bytes, on which the nodes have agreed.
func (n *Node) EventsBound() int64 {
	s, _ := n.fsm.LastArrival()
	return s.Founding.EventsBound()
}
