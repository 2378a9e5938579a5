package host

import (
	"cmp"
	"log/slog"
	"path/filepath"

	"github.com/hashicorp/go-hclog"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/logging"
	"github.com/weir-project/weir/raftstore/sharedlog"
	"github.com/weir-project/weir/raftstore/wallog"
)

// newSharedLog returns the log for all groups of a process, which is not open yet. o are the options of the whole
// process.
func newSharedLog(o Options) *sharedlog.Log {
	log := logging.New(cmp.Or(o.Logger, slog.Default()), func(logging.Line) bool { return false })
	return sharedlog.New(func() (sharedlog.Base, error) {
		w, err := openWAL(&o, identity.SharedLogName, log)
		if err != nil {
			return nil, err
		}
		return w, nil
	}, sharedlog.Limits{})
}

// openWAL opens the raft-wal in a directory of the data directory.
func openWAL(o *Options, name string, log hclog.Logger) (*wallog.Log, error) {
	sync := cmp.Or(o.Durability, identity.Fsync) == identity.Fsync && !o.Faults.Has(faults.NoSync)
	return wallog.Open(filepath.Join(o.DataDir, name), sync, log)
}

// OpenPart opens the group's part of the shared log. A log that version 0.1.0 kept for the only group of a cluster
// moves into a new part.
func (g *Group) OpenPart() (*sharedlog.Part, error) {
	own, err := g.openOwnLog()
	switch {
	case err != nil:
		return nil, err
	case own != nil:
		return g.moveLog(own)
	}
	return g.openPart()
}

// openPart opens the part with the name in the group's directory. A group with a new directory gets a new name, and so
// begins with an empty log.
func (g *Group) openPart() (*sharedlog.Part, error) {
	if err := g.Options.Host.SharedLog.Open(); err != nil {
		return nil, err
	}
	name, err := sharedlog.Name(g.Options.FS, g.Options.DataDir, identity.PartName)
	if err != nil {
		return nil, err
	}
	return g.Options.Host.SharedLog.Part(name)
}
