package raftstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

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
// only the lost majority had is lost with it.
func (n *Node) recoverIfAsked(carrier raft.Transport) error {
	o := &n.options
	path := o.FS.PathJoin(o.DataDir, recoverName)
	f, err := o.FS.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	servers, err := readSurvivors(f, o.NodeID)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s: %w", recoverName, err)
	}
	n.log.Warn("making the nodes of the recovery file the whole cluster", "nodes", len(servers))
	// The library leaves the machine it is given in a state that is not to be used.
	err = raft.RecoverCluster(n.raftConfig(), n.newMachine(), n.logs, n.logs, imageStore{n.images, n.faults}, carrier, raft.Configuration{Servers: servers})
	if err != nil {
		return fmt.Errorf("%s: %w", recoverName, err)
	}
	if err := o.FS.Rename(path, path+".done"); err != nil {
		return err
	}
	return syncDirectory(o.FS, o.DataDir)
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
