package raftstore

import "github.com/hashicorp/raft"

// The Raft library installs any image that a leader of this term sends, and then removes the whole log. An image may
// arrive late: the leader timed out, sent another image and the entries after it, and the first image is still in the
// receive buffer. If this node installed it, it would remove entries that it has acknowledged, and the next leader
// could lack a committed entry.
//
// Raft keeps the entries after an image if the log has the image's last entry (D. Ongaro and J. Ousterhout, "In
// Search of an Understandable Consensus Algorithm", figure 13, rule 6). So this node refuses such an image. The
// leader treats the refusal as a success, because the follower has everything in the image.

// has reports whether this node has the entry with this index and term, and all entries before it. Only the Raft
// library's main loop may rely on false, because no other goroutine appends to the log.
func (n *Node) has(index, term uint64) bool {
	select {
	case <-n.ready:
	case <-n.own.Ctx.Done():
		return true // the node is closing and installs no image
	}
	if max(n.raft.AppliedIndex(), n.raft.CommitIndex()) >= index {
		return true
	}
	var l raft.Log
	return n.logs.GetLog(index, &l) == nil && l.Term == term
}

// newestImage returns the index of the last entry in the newest image, or 0.
func (n *Node) newestImage() uint64 {
	infos, err := n.images.List()
	if err != nil || len(infos) == 0 {
		return 0
	}
	return infos[0].Index
}
