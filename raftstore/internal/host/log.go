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

// newSharedLog returns the log for all groups of a process, or nil if they keep their logs in memory or have logs of
// their own. o are the options of the whole process.
func newSharedLog(o Options) *sharedlog.Log {
	if o.Durability == identity.Memory || o.OwnLogs || o.Log != nil || o.Logs != nil {
		return nil
	}
	log := logging.New(cmp.Or(o.Logger, slog.Default()), func(logging.Line) bool { return false })
	return sharedlog.New(func() (sharedlog.Base, error) {
		w, err := OpenWAL(&o, identity.SharedLogName, log)
		if err != nil {
			return nil, err
		}
		return w, nil
	}, sharedlog.Limits{})
}

// OpenWAL opens the raft-wal in a directory of the data directory.
func OpenWAL(o *Options, name string, log hclog.Logger) (*wallog.Log, error) {
	sync := cmp.Or(o.Durability, identity.Fsync) == identity.Fsync && !o.Faults.Has(faults.NoSync)
	return wallog.Open(filepath.Join(o.DataDir, name), sync, log)
}

// OpenPart opens a group's part of the shared log. The part has the name in the group's directory, so a group with a
// new directory begins with an empty log.
func OpenPart(o *Options) (*sharedlog.Part, error) {
	if err := o.Host.SharedLog.Open(); err != nil {
		return nil, err
	}
	name, err := sharedlog.Name(o.FS, o.DataDir, identity.PartName)
	if err != nil {
		return nil, err
	}
	return o.Host.SharedLog.Part(name)
}
