package raftstore_test

import (
	"crypto/x509"
	"log/slog"
	"testing"
	"time"

	"github.com/weir-project/weir/internal/logtest"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/certs"
	"github.com/weir-project/weir/certs/certtest"
	"github.com/weir-project/weir/raftstore"
)

func certified(t *testing.T, o *raftstore.Options, files certs.Files) {
	store, err := certs.Open(files, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	o.Certificates = store
}

// TestClusterOverTLS checks that nodes with certificates decide together and forward requests. A node without a valid
// certificate of its own never joins, and a log names the reason.
func TestClusterOverTLS(t *testing.T) {
	ca, foreign := certtest.NewCA(t, "nodes"), certtest.NewCA(t, "nodes")
	members := &logtest.Buffer{}
	c := newCluster(t, 3, func(_ int, o *raftstore.Options) {
		o.Logger = slog.New(slog.NewTextHandler(members, nil))
		certified(t, o, ca.Issue(o.NodeID, nil))
	})
	leader, _ := c.leader()
	for i, node := range c.nodes {
		require.EqualValues(t, 9-i, c.take(node, "key", 10).Remaining, "node %d must forward the request", i)
	}

	for i, bad := range []struct {
		name, says string
		files      func(id string) certs.Files
	}{
		{"wrong CA", "signed by unknown authority", func(id string) certs.Files { return foreign.Issue(id, nil) }},
		{"another node", "the certificate belongs to another node",
			func(string) certs.Files { return ca.Issue("n0", nil) }},
		{"expired", "expired certificate", func(id string) certs.Files { return ca.Issue(id, certtest.Expired) }},
		{"none", "the peer does not speak TLS", nil},
	} {
		said := &logtest.Buffer{}
		_, err := c.grow(10+i, func(o *raftstore.Options) {
			if o.Logger = slog.New(slog.NewTextHandler(said, nil)); bad.files != nil {
				certified(t, o, bad.files(o.NodeID))
			}
		})
		require.NoError(t, err, bad.name)
		require.Eventually(t, func() bool { return said.Has(bad.says) || members.Has(bad.says) }, patience,
			10*time.Millisecond, bad.name)
		c.stop(len(c.nodes) - 1) // the log rate is limited, so only this node may cause lines
	}
	_, err := c.grow(3, func(o *raftstore.Options) {
		certified(t, o, ca.Issue("", certtest.URI("weir://node/"+o.NodeID)))
	})
	require.NoError(t, err)
	c.sees(leader, 4, 4)
	for _, m := range leader.Topology().Nodes {
		require.Contains(t, []string{"n0", "n1", "n2", "n3"}, m.ID)
	}
}

// TestRenewedNodeCertificates checks that the remaining nodes still decide after every certificate file was replaced
// and one node stopped.
func TestRenewedNodeCertificates(t *testing.T) {
	ca := certtest.NewCA(t, "nodes")
	files := make([]certs.Files, 3)
	c := newCluster(t, 3, func(i int, o *raftstore.Options) {
		files[i] = ca.Issue(o.NodeID, func(cert *x509.Certificate) { cert.NotAfter = time.Now().Add(time.Hour) })
		certified(t, o, files[i])
	})
	c.leader()
	for i := range files {
		ca.IssueTo(files[i], c.opts[i].NodeID, nil)
	}
	c.stop(2)
	c.leader()
	c.take(c.nodes[0], "key", 10)
	c.take(c.nodes[1], "key", 10)
}
