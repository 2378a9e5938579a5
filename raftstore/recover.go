package raftstore

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/hashicorp/raft"
)

// recoverName is the file by which an operator says who is left of a cluster whose
// majority is gone for good. It is used once and then renamed.
const recoverName = "recover.json"

// survivor is one line of that file.
type survivor struct {
	ID   string `json:"id"`
	Addr string `json:"addr"`
}

// recoverIfAsked makes the servers of the recovery file the whole cluster. What
// only the lost majority had is lost with it. The cluster is another one from then on,
// under an id that all who were given the same file come to: one of the lost that
// returns is refused, where it could lead the survivors in a term of its own.
//
// The node's port must not be open yet: it tells others which cluster this is.
func (n *Node) recoverIfAsked() error {
	o := &n.options
	path := o.FS.PathJoin(o.DataDir, recoverName)
	f, err := o.FS.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return n.recovered()
	}
	if err != nil {
		return err
	}
	servers, err := readSurvivors(f, o.NodeID)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s: %w", recoverName, err)
	}
	n.log.Warn("making the nodes of the recovery file the whole cluster", "nodes", len(servers))
	if err := n.endLog(); err != nil {
		return fmt.Errorf("%s: %w", recoverName, err)
	}
	// The library leaves the machine it is given in a state that is not to be used.
	m := &heir{n.newMachine(), func(old string) (string, error) { return n.succeed(old, servers) }}
	err = raft.RecoverCluster(n.raftConfig(), m, n.logs, n.logs, imageStore{n.images, n.faults}, nil, raft.Configuration{Servers: servers})
	if err != nil {
		return fmt.Errorf("%s: %w", recoverName, err)
	}
	if err := o.FS.Rename(path, path+".done"); err != nil {
		return err
	}
	if err := syncDirectory(o.FS, o.DataDir); err != nil {
		return err
	}
	return n.recovered()
}

// endLog ends the log with an entry that means nothing: the recovered state is that of
// an entry of its own, where an image of the last one may be there already, which stays
// what it is.
func (n *Node) endLog() error {
	last, err := n.logs.LastIndex()
	if err != nil {
		return err
	}
	infos, err := n.images.List()
	if err != nil {
		return err
	}
	var before raft.Log
	switch {
	case last > 0:
		err = n.logs.GetLog(last, &before)
	case len(infos) > 0:
		before.Index, before.Term = infos[0].Index, infos[0].Term
	default:
		return nil // the library says that there is nothing to recover
	}
	if err != nil {
		return err
	}
	return n.logs.StoreLog(&raft.Log{Index: before.Index + 1, Term: before.Term, Type: raft.LogNoop})
}

// heir is a machine whose snapshot is the first state of another cluster.
type heir struct {
	*machine
	succeed func(old string) (string, error)
}

// Snapshot takes the state over. One without an id has decided nothing yet, and gets
// one from its first leader.
func (h *heir) Snapshot() (raft.FSMSnapshot, error) {
	f := &h.machine.state.Founding // nobody else has this machine
	if f.ClusterID != "" {
		var err error
		if f.ClusterID, err = h.succeed(f.ClusterID); err != nil {
			return nil, err
		}
	}
	return h.machine.Snapshot()
}

// succeed writes down which cluster is being succeeded, and returns the id of the one
// that succeeds it. A recovery that was interrupted may find its own result as the old
// cluster: what it wrote down first counts.
func (n *Node) succeed(old string, servers []raft.Server) (string, error) {
	n.identity.Lock()
	defer n.identity.Unlock()
	if n.identity.Succeeds == "" {
		n.identity.Succeeds = old
	}
	n.identity.ClusterID = successorID(n.identity.Succeeds, servers)
	return n.identity.ClusterID, writeIdentity(n.options.FS, n.options.DataDir, n.identity.identity)
}

// recovered forgets the recovery that is over, so that the next one is another.
func (n *Node) recovered() error {
	n.identity.Lock()
	defer n.identity.Unlock()
	if n.identity.Succeeds == "" {
		return nil
	}
	n.identity.Succeeds = ""
	return writeIdentity(n.options.FS, n.options.DataDir, n.identity.identity)
}

// successorID is the id of the cluster that these servers of another one become.
func successorID(old string, servers []raft.Server) string {
	lines := []string{old}
	for _, s := range servers {
		lines = append(lines, fmt.Sprintf("%q %q", s.ID, s.Address))
	}
	slices.Sort(lines[1:])
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:clusterIDLen])
}

// readSurvivors reads the file for one of those it has to name.
func readSurvivors(r io.Reader, self string) (servers []raft.Server, err error) {
	var left []survivor
	if err := json.NewDecoder(io.LimitReader(r, maxIdentity)).Decode(&left); err != nil {
		return nil, fmt.Errorf(`want [{"id": "a", "addr": "10.0.0.1:6390"}, ...]: %w`, err)
	}
	for _, s := range left {
		if s.ID == "" || s.Addr == "" {
			return nil, errors.New("each node needs an id and an addr")
		}
		servers = append(servers, raft.Server{ID: raft.ServerID(s.ID), Address: raft.ServerAddress(s.Addr)})
	}
	if !slices.ContainsFunc(left, func(s survivor) bool { return s.ID == self }) {
		return nil, fmt.Errorf("it does not name this node, %q: it would have no part in the cluster", self)
	}
	return servers, nil
}
