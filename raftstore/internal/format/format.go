package format

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/wire"
)

// Nodes of different versions of weir form one cluster during a rolling upgrade. Each node reports the newest form of
// entries that it can read. An entry has the oldest form that can encode it, and an entry that some member cannot read
// is not proposed. So the log has no new form before the last node is upgraded, and until then a downgrade is
// possible. A change that adds to the log must raise wire.Version, and must state in wire.FormatOf which operations
// need the new form.

// Format tracks the newest form of entries that this node may write.
type Format struct {
	Config
	Agreed atomic.Int32 // the newest form that may be written
}

// Config has what a Format needs.
type Config struct {
	Self    string // the id of this node
	Reads   byte   // the newest form that this node reads
	Raft    Raft
	Applied Applied
	Peers   Peers
	Log     *slog.Logger
}

// Raft tells a Format about the group's members.
type Raft interface {
	// Servers returns the newest configuration that is known, committed or not.
	Servers() []raft.Server
}

// Applied tells a Format about the log that this node has applied.
type Applied interface {
	// Written returns the newest form of the entries.
	Written() byte
	// LastHistory returns the last entry, and the history up to it.
	LastHistory() (index, hash uint64)
}

// Peers tells a Format about the other nodes.
type Peers interface {
	// FormatOf returns the newest form that a member reads, or 0 if it has not said so yet.
	FormatOf(id string) byte
}

// New returns a Format that allows the oldest form.
func New(c Config) *Format {
	f := &Format{Config: c}
	f.Agreed.Store(wire.Oldest)
	return f
}

// newLog is the length of the log up to which a cluster is new. No older version has run it, so nobody is told that an
// older version no longer starts.
const newLog = 64

// Agree determines the newest form that may be written. While this node has not heard the form of a member, or knows
// no members at all, it allows only the oldest form. The forms that the log already has need no agreement, because
// every member must read them. So nodes that restart beside a dead member continue as before.
func (f *Format) Agree() {
	agreed, members := f.Reads, f.Raft.Servers()
	if len(members) == 0 {
		agreed = wire.Oldest
	}
	for _, s := range members {
		if string(s.ID) == f.Self {
			continue
		}
		agreed = min(agreed, max(f.Peers.FormatOf(string(s.ID)), wire.Oldest))
	}
	agreed = max(agreed, f.Applied.Written())
	before := f.Agreed.Swap(int32(agreed))
	if index, _ := f.Applied.LastHistory(); int32(agreed) > before && index > newLog {
		f.Log.Info("every member reads a newer log format: after an entry in that format is written, an older "+
			"version of weir no longer starts", "format", agreed)
	}
}

// CheckReadable returns an error for operations that some member cannot read. It makes an operation one that the member
// reads if it can: a block then replaces every block of its key (wire.Older), and an ID is not bound to its request.
func (f *Format) CheckReadable(ops []engine.Op) error {
	readable := func(op *engine.Op) bool { return int32(wire.FormatOf(op)) <= f.Agreed.Load() }
	asked := false // whether the members have been asked for this call
	for i := range ops {
		if readable(&ops[i]) {
			continue
		}
		if !asked {
			f.Agree()
			asked = true
		}
		if readable(&ops[i]) {
			continue
		}
		older := ops[i]
		if wire.Older(&older); !readable(&older) {
			older.Asks = engine.Fingerprint{}
		}
		if !readable(&older) {
			return limiter.ErrOldMember
		}
		ops[i] = older
	}
	return nil
}

// Of returns the format of an entry: the format that it prefers, if every member reads that, or else the one it needs.
func (f *Format) Of(forms wire.Forms) byte {
	if forms.Prefers > forms.Needs && int32(forms.Prefers) <= f.Agreed.Load() {
		return forms.Prefers
	}
	return forms.Needs
}

// CheckNewcomer returns an error for a new node that cannot read the agreed form. reads is the newest form that the
// node reads.
func (f *Format) CheckNewcomer(id string, reads byte) error {
	f.Agree()
	if agreed := byte(f.Agreed.Load()); reads < agreed {
		return fmt.Errorf("%w: format %d, %q reads %d", failure.ErrOlder, agreed, id, reads)
	}
	return nil
}
