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
	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/images"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
)

// fileName is the file by which an operator names the survivors of a cluster whose majority is lost for good. A group
// uses it once and then renames it. The first group gives a copy to the other groups on its host before it does, and
// it opens before them. So an interrupted recovery is continued in all groups, and a file that the first group refuses
// has no effect in any.
const fileName = "recover.json"

// maxFile bounds the recovery file: it has space for a thousand nodes.
const maxFile = 64 << 10

// Recovery prepares the directory of a group before the Raft library starts.
type Recovery struct {
	Self, RaftAddr string // of this node
	Group          int
	Replicas       int // as in host.Options
	// Others returns the directories of the groups that the host opens after the first group, or none in another group.
	Others     func() ([]string, error)
	Durability identity.Durability
	FS         vfs.FS
	DataDir    string
	Identity   identity.Identity // as the directory has it
	MarkHasLog func() error      // see identity.Keeper
	Log        *slog.Logger
	Faults     faults.Set

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

// recoverIfAsked makes the servers of the recovery file the whole group; see forceNewCluster. The node's port must not
// be open yet, because it reports the id of the cluster to other nodes.
func (r *Recovery) recoverIfAsked() error {
	path := r.FS.PathJoin(r.DataDir, fileName)
	content, err := r.read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = r.goOnWith(content)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", fileName, err)
	}
	others, err := r.Others()
	if err != nil {
		return err
	}
	for _, dir := range others {
		if err := persistence.WriteFile(r.FS, dir, fileName, string(content)); err != nil {
			return err
		}
	}
	if err := r.FS.Rename(path, path+".done"); err != nil {
		return err
	}
	return persistence.SyncDirectory(r.FS, r.DataDir)
}

func (r *Recovery) read(path string) ([]byte, error) {
	f, err := r.FS.Open(path)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, maxFile))
	return content, errors.Join(err, f.Close())
}

// survivors decodes the recovery file. It returns an error unless the file names this node at its address.
func (r *Recovery) survivors(content []byte) ([]survivor, error) {
	var left []survivor
	if err := json.Unmarshal(content, &left); err != nil {
		return nil, fmt.Errorf(`want [{"id": "a", "addr": "10.0.0.1:6390"}, ...]: %w`, err)
	}
	named := false
	for i, s := range left {
		switch {
		case s.ID == "" || s.Addr == "":
			return nil, errors.New("each node needs an id and an addr")
		case slices.ContainsFunc(
			left[:i], func(other survivor) bool { return other.ID == s.ID || other.Addr == s.Addr }):
			return nil, fmt.Errorf("%q at %s: the id or the addr is given twice", s.ID, s.Addr)
		case r.isNode(s, r.Self) && s.Addr != r.RaftAddr:
			return nil, fmt.Errorf(
				"the file says that this node, %q, is at %s, but its --raft-addr is %s", r.Self, s.Addr, r.RaftAddr)
		}
		named = named || r.isNode(s, r.Self)
	}
	if !named {
		return nil, fmt.Errorf("it does not name this node, %q, so this node would not be in the cluster", r.Self)
	}
	return left, nil
}

// isNode reports whether a survivor is the server with this id. The file has the ids of the first group. In another
// group, a node may have the id of another incarnation.
func (r *Recovery) isNode(s survivor, id string) bool {
	return s.ID == id || r.Group > 0 && identity.GivenID(s.ID) == identity.GivenID(id)
}

// goOnWith makes the survivors in a recovery file the whole group, unless the group needs no recovery. Every node of
// the cluster is a member of the first group, so that group refuses a file with an unknown node. The members of another
// group are some of the nodes, and it needs no recovery here if this node has no state of it. With Replicas, a group
// may keep a majority of its voters although nodes are lost. Such a group stays as it is, and loses nothing.
func (r *Recovery) goOnWith(file []byte) error {
	left, err := r.survivors(file)
	if err != nil {
		return err
	}
	log, again, err := r.endLog()
	if errors.Is(err, errNoState) && r.Group > 0 {
		r.Log.Warn("this node has no state of the group to recover")
		return nil
	} else if err != nil {
		return err
	}
	known, err := r.configured()
	if err != nil {
		return err
	}
	servers := r.servers(left, known)
	if consensus.ServerOf(servers, r.Self) == nil {
		r.Log.Warn("this node is not a member of the group, so it recovers nothing", "members", consensus.IDs(known))
		return nil
	}
	if err := check(servers, known, again); err != nil {
		return err
	}
	if r.Replicas > 0 && !again && hasMajority(servers, known) {
		r.Log.Warn("the nodes of the recovery file have a majority of this group, so it goes on as it was",
			"nodes", len(servers), "of", len(known))
		return nil
	}
	r.Log.Warn("making the nodes of the recovery file the whole cluster", "nodes", len(servers))
	return r.forceNewCluster(servers, log, again)
}

// servers returns the servers of a new cluster. In the first group, these are all survivors, and each of them votes. In
// another group, these are the survivors that are its members. A member that did not vote before gets a vote only if no
// voter survives, because its replica may be incomplete or empty.
func (r *Recovery) servers(left []survivor, known []raft.Server) (servers []raft.Server) {
	if r.Group == 0 {
		for _, s := range left {
			servers = append(servers, raft.Server{ID: raft.ServerID(s.ID), Address: raft.ServerAddress(s.Addr)})
		}
		return servers
	}
	votes := false
	for _, s := range known {
		at := slices.IndexFunc(left, func(l survivor) bool { return r.isNode(l, string(s.ID)) })
		if at >= 0 {
			s.Address = raft.ServerAddress(left[at].Addr)
			servers = append(servers, s)
			votes = votes || s.Suffrage == raft.Voter
		}
	}
	for i := range servers {
		if !votes {
			servers[i].Suffrage = raft.Voter
		}
	}
	return servers
}

// hasMajority reports whether the servers include a majority of the known voters, at the known addresses.
func hasMajority(servers, known []raft.Server) bool {
	voters, left := 0, 0
	for _, s := range known {
		if s.Suffrage == raft.Voter {
			voters++
			if slices.Contains(servers, s) {
				left++
			}
		}
	}
	return left > voters/2
}

// configured returns the servers of the newest configuration in the log or the images.
func (r *Recovery) configured() ([]raft.Server, error) {
	infos, err := r.Images.List()
	if err != nil {
		return nil, err
	}
	var meta images.Meta
	if len(infos) > 0 {
		if meta, err = images.DecodeMeta(infos[0]); err != nil {
			return nil, err
		}
	}
	first, err := r.Logs.FirstIndex()
	if err != nil {
		return nil, err
	}
	last, err := r.Logs.LastIndex()
	if err != nil {
		return nil, err
	}
	for i := last; i >= max(first, meta.ConfigurationIndex+1); i-- {
		var l raft.Log
		if err := r.Logs.GetLog(i, &l); err != nil {
			return nil, err
		}
		if l.Type == raft.LogConfiguration {
			return raft.DecodeConfiguration(l.Data).Servers, nil
		}
	}
	return meta.Configuration.Servers, nil
}
