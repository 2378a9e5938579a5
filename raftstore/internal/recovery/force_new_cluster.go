package recovery

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/images"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
)

// A cluster that is recovered becomes another one, under an id that all who were given
// the same nodes come to: one of the lost that returns is refused, where it could lead
// the survivors in a term of its own. What only the lost majority had is lost with it.
//
// Each survivor makes one image of all it has, committed or not, as the state of one
// entry more; then its log is empty and its older images are gone. The one that lacks
// least of those that meet leads, by the rules of every election. What it lacks was
// nothing in the new cluster: an image of its, older than one's own of the recovery,
// takes that one's place (see sink).
//
// Until the image is complete, nothing has changed. From then on the recovery is over
// for the log: begun again, after an interruption or with other addresses, it only
// replaces the configuration.

// termLeap is between the terms of before a recovery and those after it: more elections
// than any node can have missed. An entry of a term and index then has one content,
// also where one of the survivors had not heard of a term of before.
const termLeap = 1 << 20

// forceNewCluster makes this node one of the servers that a cluster is to consist of.
func (r *Recovery) forceNewCluster(servers []raft.Server) error {
	log, again, err := r.endLog()
	if err != nil {
		return err
	}
	// The library leaves the machine it is given in a state that is not to be used.
	h := &recoveredMachine{FSM: r.NewMachine(), log: log, self: r.Options.NodeID, servers: servers, again: again}
	images := images.Store{Images: r.Images, Faults: r.Faults, Recovered: true}
	if err := raft.RecoverCluster(r.RaftConfig(), h, log, r.Logs, images, nil,
		raft.Configuration{Servers: servers}); err != nil {
		return err
	}
	infos, err := r.Images.List()
	if err != nil {
		return err
	}
	if err := r.Images.KeepOnly(infos[0].ID); err != nil {
		return err
	}
	term, _ := r.Logs.GetUint64(raftlog.KeyTerm) // none in what was restored; the library has met any other error
	if err := r.Logs.SetUint64(raftlog.KeyTerm, max(term, infos[0].Term)+termLeap); err != nil {
		return err
	}
	if f := h.FSM.State.Founding; f.ClusterID != "" {
		r.Joined(f)
	}
	return nil
}

// recoveredMachine is a machine whose snapshot is the first state of another cluster.
type recoveredMachine struct {
	*fsm.FSM
	log     *endedLog
	self    string
	servers []raft.Server
	again   bool // the state is that of a recovery already
}

// Snapshot takes the state over. One without an id has decided nothing yet, and gets
// one from its first leader.
func (h *recoveredMachine) Snapshot() (raft.FSMSnapshot, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	f := &h.FSM.State.Founding // nobody else has this machine
	if f.ClusterID != "" && !h.again {
		f.ClusterID = recoveredClusterID(f.ClusterID, h.servers)
	}
	return h.FSM.Snapshot()
}

// check refuses nodes that the cluster never had. A recovery that is begun again has its
// id already: it is for the same nodes, or for this one alone.
func (h *recoveredMachine) check() error {
	var known []string
	if c := h.Committed.Load(); c != nil {
		known = c.Ids()
	}
	if h.log.configured != nil {
		known = consensus.IDs(h.log.configured)
	}
	survive := consensus.IDs(h.servers)
	for _, id := range survive {
		if !slices.Contains(known, id) {
			return fmt.Errorf("%q is no node of the cluster, its nodes are %s", id, strings.Join(known, ", "))
		}
	}
	if h.again && len(survive) < len(known) && len(survive) > 1 {
		return fmt.Errorf("this node was recovered as one of %s before: with fewer, it is the only one, and the others "+
			"join with empty directories", strings.Join(known, ", "))
	}
	return nil
}

// recoveredClusterID is the id of the cluster that these servers of another one become.
func recoveredClusterID(old string, servers []raft.Server) string {
	lines := []string{old}
	for _, id := range consensus.IDs(servers) {
		lines = append(lines, fmt.Sprintf("%q", id))
	}
	slices.Sort(lines[1:])
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:identity.ClusterIDLen])
}

// endedLog is the log with one entry more, which means nothing and is not on the disk:
// the recovered state is that of an entry of its own, where an image of the last one may
// be there already, which stays what it is.
type endedLog struct {
	raft.LogStore
	end        raft.Log
	configured []raft.Server // by the last configuration that was read; nil: none was
}

// endLog returns the log that a recovery reads, and whether there is the image of one
// already and nothing after it.
func (r *Recovery) endLog() (_ *endedLog, again bool, err error) {
	last, err := r.Logs.LastIndex()
	if err != nil {
		return nil, false, err
	}
	infos, err := r.Images.List()
	if err != nil {
		return nil, false, err
	}
	var before raft.Log
	switch {
	case last > 0:
		if err := r.Logs.GetLog(last, &before); err != nil {
			return nil, false, err
		}
	case len(infos) > 0:
		before.Index, before.Term = infos[0].Index, infos[0].Term
		meta, err := images.DecodeMeta(infos[0])
		if err != nil {
			return nil, false, err
		}
		again = meta.Recovered
	default:
		return nil, false, errors.New("this node has nothing that could be recovered")
	}
	log := &endedLog{LogStore: r.Logs, end: raft.Log{Index: before.Index, Term: before.Term, Type: raft.LogNoop}}
	if !again {
		log.end.Index++
	}
	return log, again, nil
}

// LastIndex is that of the entry that is not on the disk.
func (l *endedLog) LastIndex() (uint64, error) { return l.end.Index, nil }

// GetLog takes note of who the cluster consists of.
func (l *endedLog) GetLog(index uint64, to *raft.Log) error {
	if index == l.end.Index {
		*to = l.end
		return nil
	}
	err := l.LogStore.GetLog(index, to)
	if err == nil && to.Type == raft.LogConfiguration {
		l.configured = raft.DecodeConfiguration(to.Data).Servers
	}
	return err
}

// DeleteRange empties the log.
func (l *endedLog) DeleteRange(uint64, uint64) error { return raftlog.EmptyLog(l.LogStore) }
