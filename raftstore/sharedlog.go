package raftstore

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

// NewSharedLog returns the log for all groups of a process. o are the options of the whole process, and the options of
// each group take the log as SharedLog. The first group opens it after it has claimed its data directory.
// NewSharedLog returns nil if the groups keep their logs in memory, or have logs of their own.
func NewSharedLog(o Options) *sharedlog.Log {
	if o.Durability == Memory || o.OwnLogs || o.Log != nil || o.Logs != nil {
		return nil
	}
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
	sync := cmp.Or(o.Durability, Fsync) == Fsync && !o.Faults.Has(faults.NoSync)
	return wallog.Open(filepath.Join(o.DataDir, name), sync, log)
}

// openPart opens a group's part of the shared log. The part has the name in the group's directory, so a group with a
// new directory begins with an empty log.
func openPart(o *Options) (*sharedlog.Part, error) {
	if err := o.SharedLog.Open(); err != nil {
		return nil, err
	}
	name, err := sharedlog.Name(o.FS, o.DataDir, identity.PartName)
	if err != nil {
		return nil, err
	}
	return o.SharedLog.Part(name)
}
