// Package peer is the port on which nodes of a cluster talk to each other. One
// port carries everything: the streams of the Raft library and the calls of our
// own (join, status, forwarding), told apart by the first thing a dialer says.
//
// Nobody gets past the handshake without the cluster's secret, if there is one: both sides prove
// that they know it by an HMAC over what both have said, nonces included. The
// handshake also tells each side the node and the cluster of the other.
// Everything before it is bounded in size and time, so that a stranger costs little
// more than the connection.
//
// With certificates all of it happens inside TLS 1.3. Each side then also shows that an
// authority of nodes has signed for it, and that what it signed names the very node that
// speaks: a certificate opens the port to one node, not to whoever holds one. The secret
// may be left out then.
//
// The secret alone keeps strangers out; it does not hide what is said. Where the network
// between the nodes is not trusted, use certificates.
package peer
