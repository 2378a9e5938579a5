package recovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
)

// recoverName is the file by which an operator names the survivors of a cluster whose majority is lost for good. It
// is used once and then renamed.
const recoverName = "recover.json"

// Recovery prepares the directory of a group before the Raft library starts.
type Recovery struct {
	Self, RaftAddr string // of this node
	Durability     identity.Durability
	FS             vfs.FS
	DataDir        string
	Identity       identity.Identity // as the directory has it
	MarkHasLog     func() error      // see identity.Keeper
	Log            *slog.Logger
	Faults         faults.Set

	Logs   raftlog.Store
	Images *persistence.Images
	// NewMachine returns an FSM with an empty state. RaftConfig returns the settings of the Raft library.
	NewMachine func() *fsm.FSM
	RaftConfig func() *raft.Config
	// Joined is called with the constants of a recovered state.
	Joined func(fsm.Constants)
}

// survivor is one node in the recovery file.
type survivor struct {
	ID   string `json:"id"`
	Addr string `json:"addr"`
}

// Run checks the directory, and recovers a cluster if the operator asks for it.
func (r *Recovery) Run() error {
	if err := r.CheckKept(); err != nil {
		return err
	}
	if err := r.DropCompactedLog(); err != nil {
		return err
	}
	return r.recoverIfAsked()
}

// recoverIfAsked makes the servers of the recovery file the whole cluster; see forceNewCluster. The node's port must
// not be open yet, because it reports the id of the cluster to other nodes.
func (r *Recovery) recoverIfAsked() error {
	path := r.FS.PathJoin(r.DataDir, recoverName)
	f, err := r.FS.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	servers, err := readSurvivors(f, r.Self, r.RaftAddr)
	if err = errors.Join(err, f.Close()); err == nil {
		r.Log.Warn("making the nodes of the recovery file the whole cluster", "nodes", len(servers))
		err = r.forceNewCluster(servers)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", recoverName, err)
	}
	if err := r.FS.Rename(path, path+".done"); err != nil {
		return err
	}
	return persistence.SyncDirectory(r.FS, r.DataDir)
}

// readSurvivors reads the recovery file. It returns an error unless the file names the node self at the address addr.
func readSurvivors(r io.Reader, self, addr string) (servers []raft.Server, err error) {
	var left []survivor
	if err := json.NewDecoder(io.LimitReader(r, identity.MaxBytes)).Decode(&left); err != nil {
		return nil, fmt.Errorf(`want [{"id": "a", "addr": "10.0.0.1:6390"}, ...]: %w`, err)
	}
	for i, s := range left {
		switch {
		case s.ID == "" || s.Addr == "":
			return nil, errors.New("each node needs an id and an addr")
		case slices.ContainsFunc(
			left[:i], func(other survivor) bool { return other.ID == s.ID || other.Addr == s.Addr }):
			return nil, fmt.Errorf("%q at %s: the id or the addr is given twice", s.ID, s.Addr)
		case s.ID == self && s.Addr != addr:
			return nil, fmt.Errorf(
				"the file says that this node, %q, is at %s, but its --raft-addr is %s", self, s.Addr, addr)
		}
		servers = append(servers, raft.Server{ID: raft.ServerID(s.ID), Address: raft.ServerAddress(s.Addr)})
	}
	if !slices.ContainsFunc(left, func(s survivor) bool { return s.ID == self }) {
		return nil, fmt.Errorf("it does not name this node, %q, so this node would not be in the cluster", self)
	}
	return servers, nil
}
