package raftstore

import (
	"errors"
	"io"
	"strings"

	"github.com/hashicorp/raft"
)

// The Raft library installs any image that a leader of this term sends, and then removes
// the whole log. An image may come late: the leader gave up waiting, sent another one and
// entries behind it, and the first one still lies in the receive buffer. To install it
// would remove entries that this node has acknowledged, and a committed entry could be
// lost with the next leader. Raft keeps the entries that follow an image if the log has
// the image's last entry (D. Ongaro and J. Ousterhout, "In Search of an Understandable
// Consensus Algorithm", figure 13, rule 6). So this node refuses such an image, and the
// leader takes the refusal for a success: the follower has everything in the image.

// errHasImage refuses an image. Its text is the answer between nodes, and does not change.
var errHasImage = errors.New("this node has all entries of the image")

// holds reports whether this node has an entry and all entries before it. Only the Raft
// library's main loop may rely on a no, because no other goroutine appends to the log.
func (n *Node) holds(index, term uint64) bool {
	select {
	case <-n.ready:
	case <-n.ctx.Done():
		return true // the node is closing: it installs nothing more
	}
	if max(n.raft.AppliedIndex(), n.raft.CommitIndex()) >= index {
		return true
	}
	var l raft.Log
	return n.logs.GetLog(index, &l) == nil && l.Term == term
}

// newestImage returns the last entry of the newest image, or 0.
func (n *Node) newestImage() uint64 {
	infos, err := n.images.List()
	if err != nil || len(infos) == 0 {
		return 0
	}
	return infos[0].Index
}

// InstallSnapshot sends an image. A follower that refuses it because it has all its
// entries goes on behind it.
func (t transport) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	err := t.NetworkTransport.InstallSnapshot(id, target, args, resp, data)
	if err != nil && strings.Contains(err.Error(), errHasImage.Error()) {
		resp.Term, resp.Success = args.Term, true
		return nil
	}
	return err
}

// errLogReplaced ends the process after an image was installed over a log that goes on
// differently behind it. The Raft library then still takes the last removed entry for the
// end of its log: it would refuse all that follows, or panic (seen in the simulation).
var errLogReplaced = errors.New("an image of the leader has replaced the end of the log, and the Raft library needs a restart to know it")
