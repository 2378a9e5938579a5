package limiter

import (
	"cmp"
	"net"
	"strconv"
	"time"
)

// Replica is what a Limiter that is one of several nodes can also do. A Limiter
// that does not implement it stands alone.
//
// Decide works on any node. This node answers a batch of operations that are all Dry
// (RL.EXPLAIN) from its own state: the answer is linearizable after a ReadIndex, else as
// old as StaleFor says.
//
// Of the errors of the last four ErrNotLeader sends the client to the leader,
// ErrTryAgain and ErrClusterDown mean that nothing happened, ErrUnknownOutcome
// that it may have. Any other error says why nothing was done.
type Replica interface {
	// Topology is the cluster as this node sees it. It is cheap, because it is
	// asked for at each pipeline, and shared: nobody changes what it points to. On a
	// leader its CommitIndex covers every decision that has been answered.
	Topology() *Topology
	// ReadIndex returns nil when this node, whether it leads or not, has applied everything
	// that was acknowledged anywhere before the call: reads that follow are linearizable.
	// Many callers share one question to the leader. ErrClusterDown: no leader is known;
	// else ErrTryAgain.
	ReadIndex() error
	// StaleFor is an upper bound of the age of the state that this node reads without
	// ReadIndex: the time since it was last known to have applied everything acknowledged,
	// also on the leader; a hundred years while that is not known.
	StaleFor() time.Duration
	AddNode(id, raftAddr string) error
	RemoveNode(id string) error
	// TransferLeadership hands leadership to a node, to any for "".
	TransferLeadership(to string) error
	Snapshot() error
	// Digest is the last entry this node has applied and a hash of its state, the same
	// on every node that has applied it. It takes as long as reading the whole table.
	Digest() (index, hash uint64)
}

// Topology is a cluster as one node sees it.
type Topology struct {
	ClusterID    string   // hexadecimal
	Self         string   // the id of this node
	Leader       string   // its id, empty while none is known
	LastLeader   string   // the last one known
	Term         uint64   // Raft's
	AppliedIndex uint64   // of this node
	CommitIndex  uint64   // as this node knows it
	Format       byte     // the newest form of the log that may be written
	Nodes        []Member // in the order of their ids
}

// Member is one node of a cluster.
type Member struct {
	ID           string
	ClientAddr   string // host:port for clients, empty while unknown
	RaftAddr     string // host:port for the other nodes
	Voter        bool
	Up           bool
	AppliedIndex uint64
	LastHeard    time.Duration // how long ago
	LagEntries   uint64        // committed, as far as was known when it was last heard, and not applied by it
	ClockAhead   time.Duration // of this node's wall clock, to about a round trip
	Format       byte          // the newest form of the log that it reads; 0: it has not said
	WebURL       string        // of its page; "": not reached from elsewhere, or not known
}

// Leads says whether this node is the leader, as far as it knows.
func (t *Topology) Leads() bool { return t.Leader != "" && t.Leader == t.Self }

// Member finds a node by its id, or returns nil.
func (t *Topology) Member(id string) *Member {
	for i := range t.Nodes {
		if t.Nodes[i].ID == id {
			return &t.Nodes[i]
		}
	}
	return nil
}

// Primary is the node that clients see as the owner of all slots: the leader, or
// while there is none the last one, so that clients keep a map. It may be nil.
func (t *Topology) Primary() *Member { return t.Member(cmp.Or(t.Leader, t.LastLeader)) }

// Count is how many nodes are as asked.
func (t *Topology) Count(is func(*Member) bool) (n int) {
	for i := range t.Nodes {
		if is(&t.Nodes[i]) {
			n++
		}
	}
	return n
}

func IsUp(m *Member) bool    { return m.Up }
func IsVoter(m *Member) bool { return m.Voter }

// HostPort splits the address for clients; ok is false while it is unknown.
func (m *Member) HostPort() (host string, port int, ok bool) {
	if m == nil {
		return "", 0, false
	}
	host, text, err := net.SplitHostPort(m.ClientAddr)
	if err != nil {
		return "", 0, false
	}
	port, err = strconv.Atoi(text)
	return host, port, err == nil
}
