#!/usr/bin/env bash
# github.com/hashicorp/raft v1.8.0 (Go), also 1.7.3: a node that stands for election hears of a leader of its own term.
# Guess: it becomes a follower, whichever message tells it (Raft, section 5.2).
# Seen: a heartbeat makes it a follower. An image (InstallSnapshot) does not: it is a candidate that names a leader.
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
	"bytes"
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

// inbox is a transport whose messages come from the test.
type inbox struct {
	*raft.InmemTransport
	rpcs chan raft.RPC
}

func (i inbox) Consumer() <-chan raft.RPC { return i.rpcs }

// after starts one of three nodes alone, waits until it stands for election, and passes it a message of n2.
func after(message func(raft.RPCHeader, raft.Configuration) any) string {
	config := raft.DefaultConfig()
	config.LocalID, config.LogOutput = "n1", io.Discard
	config.HeartbeatTimeout, config.LeaderLeaseTimeout, config.ElectionTimeout = time.Second, time.Second, time.Minute
	three := raft.Configuration{Servers: []raft.Server{
		{ID: "n1", Address: "n1"}, {ID: "n2", Address: "n2"}, {ID: "n3", Address: "n3"}}}
	_, transport := raft.NewInmemTransport("n1")
	store, images, in := raft.NewInmemStore(), raft.NewInmemSnapshotStore(), inbox{transport, make(chan raft.RPC)}
	must(raft.BootstrapCluster(config, store, store, images, transport, three))
	node, err := raft.NewRaft(config, fsm{}, store, store, images, in)
	must(err)
	defer func() { must(node.Shutdown().Error()) }()
	for node.State() != raft.Candidate {
		time.Sleep(10 * time.Millisecond)
	}
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("n2"), Addr: []byte("n2")}
	answers := make(chan raft.RPCResponse, 1)
	in.rpcs <- raft.RPC{Command: message(header, three), Reader: bytes.NewReader(nil), RespChan: answers}
	must((<-answers).Error)
	_, leader := node.LeaderWithID()
	return fmt.Sprintf("%v with the leader %q", node.State(), leader)
}

func main() {
	heartbeat := after(func(h raft.RPCHeader, _ raft.Configuration) any {
		return &raft.AppendEntriesRequest{RPCHeader: h, Term: 1}
	})
	image := after(func(h raft.RPCHeader, c raft.Configuration) any {
		return &raft.InstallSnapshotRequest{RPCHeader: h, SnapshotVersion: raft.SnapshotVersionMax, Term: 1, LastLogIndex: 9,
			LastLogTerm: 1, Configuration: raft.EncodeConfiguration(c), ConfigurationIndex: 1}
	})
	version := ""
	info, _ := debug.ReadBuildInfo()
	for _, d := range info.Deps {
		if d.Path == "github.com/hashicorp/raft" {
			version = d.Version
		}
	}
	fmt.Println("raft", version, "- after a heartbeat:", heartbeat, "- after an image:", image)
	if heartbeat != `Follower with the leader "n2"` || image != `Candidate with the leader "n2"` {
		fmt.Println("CHANGED: both messages act alike")
		os.Exit(1)
	}
}
GO
go get github.com/hashicorp/raft@v1.8.0 >/dev/null 2>&1
go run .
