package main

import (
	"fmt"
	"log/slog"

	"github.com/weir-project/weir/internal/cli/listener"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/server"
	"github.com/weir-project/weir/server/envoyrls"
	"github.com/weir-project/weir/server/httpapi"
)

// spareFiles are the file descriptors that the clients of no server may have: the store's,
// those of probes and scrapers, TLS handshakes, and a few for listeners, locks and logs. A store
// that cannot open a file ends the process, so no number of clients may cause it.
const spareFiles = persistence.MaxOpenFiles + httpapi.MaxConns + server.MaxHandshakes + 32

// peerFiles are the file descriptors of connections with other nodes, besides those of
// handshakes: of a cluster of nine, each of which keeps up to eight with another for Raft and
// for calls either way.
const peerFiles = 64

// fitFiles lowers the number of clients to what the limit on file descriptors
// leaves room for.
func (s *serveCmd) fitFiles(log *slog.Logger) error {
	files, err := fileLimit()
	if err != nil {
		return fmt.Errorf("the limit on file descriptors: %w", err)
	}
	room, err := listener.ClientRoom(files, s.besidesClients())
	if err != nil {
		return err
	}
	if s.MaxClients > room {
		log.Warn("fewer clients than --max-clients: the limit on file descriptors is low",
			"limit", files, "max_clients", room, "asked", s.MaxClients)
		s.MaxClients = room
	}
	return nil
}

// besidesClients are the file descriptors that clients may not have: spareFiles, and those of
// the ports that not every server has.
func (s *serveCmd) besidesClients() uint64 {
	taken := uint64(spareFiles)
	if s.RLS != "" {
		taken += envoyrls.MaxConns
	}
	if s.HTTP != "" && s.HTTPCheck != httpapi.CheckOff {
		taken += httpapi.CheckMaxConns - httpapi.MaxConns
	}
	if s.clustered() {
		taken += peer.MaxHandshakes + peerFiles
	}
	return taken
}
