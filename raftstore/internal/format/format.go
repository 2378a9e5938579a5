package format

import (
	"fmt"
	"sync/atomic"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/wire"
)

// Nodes of different versions of weir form one cluster while it is upgraded node by
// node. Each says which form of entries is the newest that it can read. An entry is in the
// oldest form that has what is in it, and what not every member can read is not written at
// all. So nothing new is in the log before the last node is upgraded, and until something
// is there is a way back. Whoever gives the log something new raises wire.Version, and
// says in wire.FormatOf what needs it.

// Format is the form of entries that this node writes.
type Format struct {
	*host.Host
	Raft   *consensus.Raft
	FSM    *fsm.FSM
	Agreed atomic.Int32 // the newest that may be written
}

// Agree finds out what may be written. A member that has not said what it can read,
// as far as this node remembers, holds everybody to the oldest form; so do members that
// this node does not know yet. But what is in the log already every member has to read, so
// none is asked about that: nodes that were restarted beside a dead one go on as before.
func (f *Format) Agree() {
	agreed, members := f.Options.Format, f.Raft.Servers()
	if len(members) == 0 {
		agreed = wire.Oldest
	}
	for _, s := range members {
		if string(s.ID) == f.Options.NodeID {
			continue
		}
		said, _ := f.Peers.Last(string(s.ID))
		agreed = min(agreed, max(said.Format, wire.Oldest))
	}
	agreed = max(agreed, f.FSM.Written())
	if before := f.Agreed.Swap(int32(agreed)); int32(agreed) > before {
		f.Log.Info("every member reads a newer form of the log: once what needs it is written, an older weir does not "+
			"start any more", "format", agreed)
	}
}

// CheckReadable refuses operations that not every member can read.
func (f *Format) CheckReadable(ops []engine.Op) error {
	for i := range ops {
		needed := int32(wire.FormatOf(&ops[i]))
		if needed <= f.Agreed.Load() {
			continue
		}
		if f.Agree(); needed > f.Agreed.Load() {
			return failure.ErrOldMember
		}
	}
	return nil
}

// CheckNewcomer refuses a new node that could not read an entry of the log.
func (f *Format) CheckNewcomer(id string, reads byte) error {
	f.Agree()
	if agreed := byte(f.Agreed.Load()); max(reads, wire.Oldest) < agreed {
		return fmt.Errorf("%w: format %d, %q reads %d", failure.ErrOlder, agreed, id, max(reads, wire.Oldest))
	}
	return nil
}
