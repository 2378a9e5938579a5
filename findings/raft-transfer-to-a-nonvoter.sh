#!/usr/bin/env bash
# github.com/hashicorp/raft v1.8.0 (Go), also 1.7.3: leadership is transferred to a member without a vote.
# Guess: the leader refuses, because such a member can never lead, and goes on.
# Seen: LeadershipTransferToServer returns nil. The leader has stepped down, and the voters elect one of themselves.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat > go.mod <<'MOD'
module finding
go 1.24
MOD
cat > main.go <<'GO'
package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/hashicorp/raft"
)

type fsm struct{}

func (fsm) Apply(*raft.Log) any                 { return nil }
func (fsm) Snapshot() (raft.FSMSnapshot, error) { return nil, io.EOF }
func (fsm) Restore(state io.ReadCloser) error   { return state.Close() }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// leads waits until one of the nodes leads a term that is later than another one.
func leads(nodes map[raft.ServerID]*raft.Raft, later uint64) (id raft.ServerID, node *raft.Raft) {
	for ; ; time.Sleep(10 * time.Millisecond) {
		for id, node := range nodes {
			if node.State() == raft.Leader && node.CurrentTerm() > later {
				return id, node
			}
		}
	}
}

func main() {
	members := raft.Configuration{Servers: []raft.Server{{ID: "n1", Address: "n1"}, {ID: "n2", Address: "n2"},
		{ID: "n3", Address: "n3"}, {ID: "learner", Address: "learner", Suffrage: raft.Nonvoter}}}
	nodes, ways := map[raft.ServerID]*raft.Raft{}, map[raft.ServerID]*raft.InmemTransport{}
	for _, s := range members.Servers {
		_, ways[s.ID] = raft.NewInmemTransport(s.Address)
		for id, other := range ways {
			ways[s.ID].Connect(raft.ServerAddress(id), other)
			other.Connect(s.Address, ways[s.ID])
		}
	}
	for _, s := range members.Servers {
		config := raft.DefaultConfig()
		config.LocalID, config.LogOutput = s.ID, io.Discard
		store, images := raft.NewInmemStore(), raft.NewInmemSnapshotStore()
		must(raft.BootstrapCluster(config, store, store, images, ways[s.ID], members))
		node, err := raft.NewRaft(config, fsm{}, store, store, images, ways[s.ID])
		must(err)
		nodes[s.ID] = node
	}
	_, leader := leads(nodes, 0)
	must(leader.Barrier(0).Error())
	term := leader.CurrentTerm()
	err := leader.LeadershipTransferToServer("learner", "learner").Error()
	state := leader.State()
	next, _ := leads(nodes, term)

	version := ""
	info, _ := debug.ReadBuildInfo()
	for _, d := range info.Deps {
		if d.Path == "github.com/hashicorp/raft" {
			version = d.Version
		}
	}
	fmt.Println("raft", version, "- the transfer returns:", err, "- the leader then is a", state,
		"- a voter leads the next term:", next != "learner")
	if err != nil || state == raft.Leader || next == "learner" {
		fmt.Println("CHANGED: the transfer fails, or the member without a vote leads")
		os.Exit(1)
	}
}
GO
go get github.com/hashicorp/raft@v1.8.0 >/dev/null 2>&1
go run .
