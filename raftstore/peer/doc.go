// Package peer implements the inter-node port. One port carries the streams of the Raft library and weir's own calls
// (join, status, forwarding). The dialer names the service in its greeting.
//
// A Hub shares one listener among the Raft groups of a host. A Port belongs to one group: it has the identity of the
// node in that group and the connections of that group, and can be closed alone. The greeting also names the group.
// The acceptor looks for the group after the dialer's proof, and refuses a group that the host does not have.
//
// If the cluster has a secret, both sides of the handshake prove that they know it. The proof is an HMAC over the
// messages of both sides, which include nonces. The handshake also tells each side the node id and the cluster id of
// the other. It is bounded in size and time, so a connection without the secret uses few resources.
//
// With certificates, the handshake runs inside TLS 1.3. Each side then also shows a certificate of the authority of
// node certificates, and the certificate must name the node itself. So a certificate opens the port to one node only.
// The secret is optional then.
//
// The secret authenticates nodes and does not encrypt. Use certificates if the network between the nodes is not
// trusted.
//
// The package leaves to its callers which nodes are members, and what a call means.
package peer
