package transport

import (
	"io"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore/internal/images"
)

// Transport is the Raft library's network transport without its fast path for heartbeats. That path handles
// heartbeats outside the main loop. A leader that was paused can then write a waiting proposal under its successor's
// term, and later take it for an entry of the successor. The nodes then diverge permanently (hashicorp/raft issue
// 695, in every release up to 1.8.0).
//
// Transport ignores the handler, so heartbeats pass through the main loop, as the interface allows. It promotes all
// other methods, so that the library still finds its optional interfaces.
type Transport struct {
	Carrier
	Gate  *Gate
	Reach func(faults.Point) // host.Group.Reach
}

var (
	_ raft.WithPreVote = Transport{}
	_ raft.WithClose   = Transport{}
)

// AppendEntries sends entries, or a heartbeat, unless the disk of this leader is stuck.
func (t Transport) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest,
	resp *raft.AppendEntriesResponse) error {
	t.Gate.Wait()
	return t.Carrier.AppendEntries(id, target, args, resp)
}

// SetHeartbeatHandler ignores the handler.
func (Transport) SetHeartbeatHandler(func(raft.RPC)) {}

// InstallSnapshot sends an image. It reports success when the follower refuses the image
// because it has all entries: the leader then sends the entries after the image.
func (t Transport) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest,
	resp *raft.InstallSnapshotResponse, data io.Reader) error {
	t.Reach(faults.BeforeImage)
	err := t.Carrier.InstallSnapshot(id, target, args, resp, data)
	if err != nil && strings.Contains(err.Error(), images.ErrHasImage.Error()) {
		resp.Term, resp.Success = args.Term, true
		return nil
	}
	return err
}
