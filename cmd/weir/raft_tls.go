package main

import (
	"fmt"
	"log/slog"

	"github.com/weir-project/weir/certs"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/peer"
)

// certifyNode gives the node the certificate of the flags, if they name one. The next handshake reads replaced files
// again.
func (f *clusterFlags) certifyNode(o *raftstore.Options, log *slog.Logger) error {
	files := certs.Files{Cert: f.RaftTLSCertFile, Key: f.RaftTLSKeyFile, CA: f.RaftTLSCAFile}
	switch {
	case files == certs.Files{}:
		return nil
	case files.Cert == "" || files.Key == "" || files.CA == "":
		return fmt.Errorf("%w: --raft-tls-cert-file, --raft-tls-key-file and --raft-tls-ca-file must be given together",
			errTLSFlags)
	}
	store, err := certs.Open(files, log)
	if err != nil {
		return fmt.Errorf("--raft-tls-cert-file, --raft-tls-key-file, --raft-tls-ca-file: %w", err)
	}
	if !peer.CertifiesNode(store.Leaf(), o.NodeID) {
		return fmt.Errorf("%w: %s is not a certificate of node %q: it needs that as a DNS name, or "+
			"weir://node/%[3]s as a URI", errTLSFlags, files.Cert, o.NodeID)
	}
	warnOfDates(log, "--raft-tls-cert-file", files.Cert, store)
	o.Certificates = store
	return nil
}
