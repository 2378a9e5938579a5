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

// A recovered cluster is a new cluster with a new id. Survivors whose recovery files name the same nodes compute the
// same id. The new cluster refuses a lost node that returns, because that node could otherwise lead the survivors in a
// later term.
//
// Each survivor writes one image of its whole state, committed or not, at one log index after its last entry. Then it
// empties its log and removes its older images. The survivors elect their leader by Raft's rules: its log is at least
// as complete as the logs of a majority of the survivors. Entries that this leader lacks are not part of the new
// cluster. The leader's older image replaces the recovery image of a survivor that had more entries (see images.Sink).
//
// Until the image is complete, the directory is unchanged. From then on the log is not read again. A recovery that is
// repeated, after an interruption or with other addresses, only replaces the configuration.

// termLeap is the distance between the terms before and after a recovery. It exceeds the number of elections that a
// node can have missed. So an entry of a term and index has one content, even if a survivor had not heard of an
// earlier term.
const termLeap = 1 << 20

// forceNewCluster makes this node a member of a new cluster of the given servers. The arguments log and again are what
// endLog returned.
func (r *Recovery) forceNewCluster(servers []raft.Server, log *endedLog, again bool) error {
	// RecoverCluster leaves the FSM in a state that must not be used.
	h := &recoveredMachine{FSM: r.NewMachine(), servers: servers, again: again}
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
	// a restored directory has no term; the library has reported any other error
	term, _ := r.Logs.GetUint64(raftlog.KeyTerm)
	if err := r.Logs.SetUint64(raftlog.KeyTerm, max(term, infos[0].Term)+termLeap); err != nil {
		return err
	}
	if f := h.FSM.State.Founding; f.ClusterID != "" {
		r.Joined(f)
	}
	return nil
}

// recoveredMachine is an FSM whose snapshot is the first state of the new cluster.
type recoveredMachine struct {
	*fsm.FSM
	servers []raft.Server
	again   bool // the state comes from an earlier recovery
}

// Snapshot takes a snapshot of the state under the id of the new cluster. A state without an id has no decisions, and
// gets its id from its first leader.
func (h *recoveredMachine) Snapshot() (raft.FSMSnapshot, error) {
	f := &h.FSM.State.Founding // no other goroutine has this FSM
	if f.ClusterID != "" && !h.again {
		f.ClusterID = recoveredClusterID(f.ClusterID, h.servers)
	}
	return h.FSM.Snapshot()
}

// check returns an error if a server was never a node of the cluster, whose nodes are known. A repeated recovery has
// its id already, so it must name the same nodes, or this node alone.
func check(servers, known []raft.Server, again bool) error {
	ids := consensus.IDs(known)
	for _, id := range consensus.IDs(servers) {
		if !slices.Contains(ids, id) {
			return fmt.Errorf("%q is not a node of the cluster, its nodes are %s", id, strings.Join(ids, ", "))
		}
	}
	if again && len(servers) < len(known) && len(servers) > 1 {
		return fmt.Errorf("this node was recovered as one of %s before: for fewer nodes, recover this node alone and "+
			"let the others join with empty directories", strings.Join(ids, ", "))
	}
	return nil
}

// recoveredClusterID returns the id of the new cluster that these servers of an old cluster form.
func recoveredClusterID(old string, servers []raft.Server) string {
	lines := []string{old}
	for _, id := range consensus.IDs(servers) {
		lines = append(lines, fmt.Sprintf("%q", id))
	}
	slices.Sort(lines[1:])
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:identity.ClusterIDLen])
}

// endedLog is the log with one more entry, which has no effect and is not on disk. The recovered state has the index
// of this entry, because an image of the last entry may exist already and must not change.
type endedLog struct {
	raft.LogStore
	end raft.Log
}

var errNoState = errors.New("this node has no state to recover")

// endLog returns the log that a recovery reads. again reports that the directory has an image of an earlier recovery
// and no later entry.
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
		return nil, false, errNoState
	}
	log := &endedLog{LogStore: r.Logs, end: raft.Log{Index: before.Index, Term: before.Term, Type: raft.LogNoop}}
	if !again {
		log.end.Index++
	}
	return log, again, nil
}

// LastIndex returns the index of the entry that is not on disk.
func (l *endedLog) LastIndex() (uint64, error) { return l.end.Index, nil }

// GetLog reads an entry.
func (l *endedLog) GetLog(index uint64, to *raft.Log) error {
	if index == l.end.Index {
		*to = l.end
		return nil
	}
	return l.LogStore.GetLog(index, to)
}

// DeleteRange empties the log.
func (l *endedLog) DeleteRange(uint64, uint64) error { return raftlog.EmptyLog(l.LogStore) }
