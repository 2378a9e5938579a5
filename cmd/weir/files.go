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

// spareFiles is the number of file descriptors that every server reserves: for the store, probes and scrapers, TLS
// handshakes, and a few for listeners, locks and logs. A store that cannot open a file ends the process, so clients
// must never use these descriptors.
const spareFiles = persistence.MaxOpenFiles + httpapi.MaxConns + server.MaxHandshakes + 32

// peerFiles is the number of file descriptors for connections with other nodes, apart from handshakes. It fits a
// cluster of nine, in which each node keeps up to eight connections with another for Raft and for calls.
const peerFiles = 64

// fitFiles lowers the number of clients to what the limit on file descriptors allows.
func (s *serveCmd) fitFiles(log *slog.Logger) error {
	files, err := fileLimit()
	if err != nil {
		return fmt.Errorf("the limit on file descriptors: %w", err)
	}
	room, err := listener.MaxClients(files, s.besidesClients())
	if err != nil {
		return err
	}
	if s.MaxClients > room {
		log.Warn("accepting fewer clients than --max-clients, because the limit on file descriptors is too low",
			"limit", files, "max_clients", room, "asked", s.MaxClients)
		s.MaxClients = room
	}
	return nil
}

// besidesClients returns the number of file descriptors that clients may not use: spareFiles, and those of the optional
// ports.
func (s *serveCmd) besidesClients() uint64 {
	taken := uint64(spareFiles)
	if s.servesEnvoys() {
		taken += envoyrls.MaxConns
	}
	if (s.HTTP != "" || s.HTTPSocket != "") && (s.HTTPCheck != httpapi.CheckOff || s.HTTPREST) {
		taken += httpapi.CheckMaxConns - httpapi.MaxConns
	}
	if s.clustered() {
		taken += peer.MaxHandshakes + peerFiles
	}
	return taken
}
