package transport

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// passing is a transport whose messages come through passOn. It reaches no other node.
type passing struct {
	*raft.InmemTransport
	from *Shared
}

func (p passing) Consumer() <-chan raft.RPC { return p.from.rpcs }

type forgetful struct{}

func (forgetful) Apply(*raft.Log) any                 { return nil }
func (forgetful) Snapshot() (raft.FSMSnapshot, error) { return nil, io.EOF }
func (forgetful) Restore(state io.ReadCloser) error   { return state.Close() }

// TestACandidateThatGetsAnImageVotes checks that a node which stands for election while a leader sends it an image
// votes for another node after that leader has ended. Without the vote the others may have no majority.
func TestACandidateThatGetsAnImageVotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Shared{rpcs: make(chan raft.RPC), done: make(chan struct{})}
		arrived := make(chan raft.RPC)
		go s.passOn(arrived)
		_, carrier := raft.NewInmemTransport("n1")
		config := raft.DefaultConfig()
		config.LocalID, config.LogOutput = "n1", io.Discard
		servers := raft.Configuration{Servers: []raft.Server{
			{ID: "n1", Address: "n1"}, {ID: "n2", Address: "n2"}, {ID: "n3", Address: "n3"}}}
		store, images := raft.NewInmemStore(), raft.NewInmemSnapshotStore()
		require.NoError(t, raft.BootstrapCluster(config, store, store, images, carrier, servers))
		node, err := raft.NewRaft(config, forgetful{}, store, store, images, passing{carrier, s})
		require.NoError(t, err)
		ask := func(command any) any {
			answers := make(chan raft.RPCResponse, 1)
			arrived <- raft.RPC{Command: command, Reader: bytes.NewReader(nil), RespChan: answers}
			answer := <-answers
			require.NoError(t, answer.Error)
			return answer.Response
		}
		header := func(id string) raft.RPCHeader {
			return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: []byte(id)}
		}
		for node.State() != raft.Candidate {
			time.Sleep(time.Second)
		}
		installed := ask(&raft.InstallSnapshotRequest{
			RPCHeader: header("n2"), SnapshotVersion: raft.SnapshotVersionMax, Term: 1, LastLogIndex: 9, LastLogTerm: 1,
			Configuration: raft.EncodeConfiguration(servers), ConfigurationIndex: 1,
		}).(*raft.InstallSnapshotResponse)
		require.True(t, installed.Success)
		time.Sleep(time.Minute) // n2 sends nothing any more
		vote := ask(&raft.RequestPreVoteRequest{RPCHeader: header("n3"), Term: 2, LastLogIndex: 9, LastLogTerm: 1})
		require.True(t, vote.(*raft.RequestPreVoteResponse).Granted)
		close(s.done)
		require.NoError(t, node.Shutdown().Error())
	})
}
