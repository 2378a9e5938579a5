// Package peer is the port on which nodes of a cluster talk to each other. One
// port carries everything: the streams of the Raft library and the calls of our
// own (join, status, forwarding), told apart by the first thing a dialer says.
//
// Nobody gets past the handshake without the cluster's secret: both sides prove
// that they know it by an HMAC over what both have said, nonces included. The
// handshake also tells each side the node and the cluster of the other.
// Everything before it is bounded in size and time, so that a stranger costs little
// more than the connection.
//
// The secret keeps strangers out; it does not hide what is said. Where the network
// between the nodes is not trusted, it has to be encrypted below.
package peer
