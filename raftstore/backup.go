package raftstore

import (
	"github.com/weir-project/weir/persistence"
)

// Backup takes a snapshot and returns it as a file for persistence.Restore or Restore.
// It contains everything this node has applied when it is called: on the leader all that
// was answered, on a follower what it knew. Deciding goes on meanwhile. ErrUnavailable
// when the node closes, or has applied nothing yet.
func (n *Node) Backup() (*persistence.Backup, error) {
	if err := n.Snapshot(); err != nil {
		return nil, err
	}
	infos, err := n.images.List()
	if err != nil {
		return nil, err
	}
	if len(infos) == 0 {
		return nil, ErrUnavailable
	}
	stream, info, err := n.images.Send(infos[0].ID)
	if err != nil {
		return nil, err
	}
	return persistence.NewBackup(stream, info.Bytes, n.contents(info)), nil
}

// contents describes an image. What was applied since it was made only brings the clock
// further, as its own going on would have.
func (n *Node) contents(info persistence.ImageInfo) persistence.Contents {
	n.machine.mu.Lock()
	lifetime := n.machine.state.Founding.IDLifetimeNs
	n.machine.mu.Unlock()
	return persistence.Contents{
		Index: info.Index, Term: info.Term, IDLifetimeNs: lifetime,
		At: n.clockFrom(n.machine.last()).Record(),
	}
}
