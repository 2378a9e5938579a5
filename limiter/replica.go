package limiter

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-project/weir/engine/hashslot"
)

// Replica is implemented by a Limiter that is a node of a cluster. A Limiter that does not implement it runs alone.
//
// Decide works on any node. If all operations of a batch are Dry (RL.EXPLAIN), the node answers from its own state.
// Such an answer is linearizable after a ReadIndex. Otherwise StaleFor bounds the age of the state. For a group that is
// away, Decide asks another node instead. Such an answer is linearizable; its errors are those of ReadIndex.
//
// The errors of AddNode, RemoveNode, TransferLeadership and Snapshot have these meanings. ErrNotLeader sends the client
// to the leader. After ErrTryAgain and ErrClusterDown nothing was changed. After ErrUnknownOutcome the change may have
// been made. Any other error gives the reason why nothing was changed, or says in how many Raft groups it was made.
type Replica interface {
	// Topology returns the cluster as this node sees it. Every pipeline calls it, so it is cheap. Callers share the
	// result and must not change it. On a leader its CommitIndex covers every answered decision.
	Topology() *Topology
	// ReadIndex returns nil when this node, leader or follower, has applied every entry that was acknowledged before
	// the call. Reads after it are linearizable. Concurrent callers share one request to the leader. ReadIndex returns
	// ErrClusterDown if no leader is known, and ErrTryAgain for other failures.
	ReadIndex() error
	// StaleFor returns an upper bound of the age of the state that this node reads without ReadIndex. The bound is the
	// time since this node last knew that it had applied all acknowledged entries. The leader computes it in the same
	// way. The bound is UnknownAge while this node does not know it.
	StaleFor() time.Duration
	AddNode(id, raftAddr string) error
	RemoveNode(id string) error
	// TransferLeadership transfers leadership to a node, or with "" to any node.
	TransferLeadership(to string) error
	Snapshot() error
	// Digest returns the last applied log index of a group, counted from 0, and a hash of the state at this index. All
	// nodes that have the group have the same hash at the same index. A node without it returns 0, 0. Digest reads the
	// whole table.
	Digest(group int) (index, hash uint64)

	// LeaderOf returns the id of the node that leads the group of a slot, or "" while it is unknown. It may know a
	// newer leader than Topology.
	LeaderOf(slot uint16) string
	// ReadIndexOf is ReadIndex for the keys in the group of a slot, and StaleForOf is StaleFor for them. They work
	// while another group has no leader. For a group that is away, they return nil and 0: see Spread. ReadIndex and
	// StaleFor are about the groups that this node has.
	ReadIndexOf(slot uint16) error
	StaleForOf(slot uint16) time.Duration
	// LenOf returns the number of keys of a database in the slots of the group of a slot, 0 for a group that is away.
	LenOf(slot uint16, database int) int64
	// TransferGroup transfers the leadership of a group, counted from 0, to a node, or with "" to any other node.
	TransferGroup(group int, to string) error
	// MoveReplica makes the next step of moving a replica of a group, counted from 0, between two nodes. The caller
	// repeats the call until the move is done. With from "" the group gets one more replica, if it has fewer than
	// Topology.Replicas. With to "" it loses one that it has too many.
	MoveReplica(group int, from, to string) (Move, error)
	// RemoveFromGroup removes a node from a group, counted from 0. The node keeps its other groups, unless the group is
	// the first one: a node that leaves the first group soon leaves every other. It is for tests.
	RemoveFromGroup(id string, group int) error
}

// Move is the state of a move of a replica.
type Move struct {
	Done  bool
	Step  string // what has begun, or what the move waits for; for people
	Waits bool   // nothing has begun
}

// UnknownAge is the result of Replica.StaleFor while the age is unknown. It exceeds every possible age.
const UnknownAge = 100 * 365 * 24 * time.Hour

// Topology is a cluster as one node sees it.
type Topology struct {
	ClusterID    string   // hexadecimal
	Self         string   // the id of this node
	Leader       string   // id of the leader, empty while unknown
	LastLeader   string   // the last known leader
	Term         uint64   // Raft term
	AppliedIndex uint64   // of this node
	CommitIndex  uint64   // as known to this node
	Format       byte     // the newest form of the log that may be written
	Nodes        []Member // in order of their ids
	// Replicas is the number of nodes that shall have a replica of each group; 0: every node has one of every group.
	Replicas int
	// Groups are the Raft groups of the cluster in the order of their slots, at least one. The fields from Leader to
	// CommitIndex describe the first one.
	Groups []Group
}

// Group is one Raft group of a cluster as one node sees it.
type Group struct {
	Slots        hashslot.Range // the slots that the group owns
	Leader       string         // id of the leader, empty while unknown
	LastLeader   string         // the last known leader
	Term         uint64
	AppliedIndex uint64 // of this node
	CommitIndex  uint64 // as known to this node
	Ended        string // why this node's replica of the group has ended; "": it has not
	// Away tells that this node has no replica of the group, and knows it from the reports of other nodes. AppliedIndex
	// is then that of the leader.
	Away bool
	// Members are the nodes that have a replica of the group, in order of their ids; nil while they are unknown. A node
	// that only follows the first group has none.
	Members []GroupMember
}

// GroupMember is a node that has a replica of a group.
type GroupMember struct {
	ID         string
	Voter      bool   // it has caught up, and counts for majorities
	LagEntries uint64 // committed entries that it has not applied, as of its last message
	Silent     bool   // the group hears nothing from the replica: its node is down, or has lost it
}

// Member is one node of a cluster.
type Member struct {
	ID           string
	ClientAddr   string // host:port for clients, empty while unknown
	RaftAddr     string // host:port for the other nodes
	Voter        bool   // in every group of which it shall have a replica, at least one
	Up           bool
	AppliedIndex uint64
	LastHeard    time.Duration // time since the last message; see NeverHeard
	LagEntries   uint64        // committed entries not applied in its worst group, as of its last message
	ClockAhead   time.Duration // its wall clock minus the observer's, accurate to about a round trip
	Format       byte          // the newest form of the log that the member reads; 0: unknown
	Zone         string        // of --zone; "": none, or unknown
	WebURL       string        // URL of its web page; "": not reachable from other machines, or unknown
}

// DatabasesFormat is the form of the log from which on all members know other databases than 0.
const DatabasesFormat = 14

// Leads reports whether this node is the leader, as far as it knows. With several groups this is the leader of the
// first group.
func (t *Topology) Leads() bool { return t.Leader != "" && t.Leader == t.Self }

// Member returns the node with an id, or nil.
func (t *Topology) Member(id string) *Member {
	for i := range t.Nodes {
		if t.Nodes[i].ID == id {
			return &t.Nodes[i]
		}
	}
	return nil
}

// Primary returns the node that cluster clients see as the owner of all slots. It is the leader or, without one, the
// last known leader, so that clients keep their slot map. It may be nil.
func (t *Topology) Primary() *Member { return t.Member(cmp.Or(t.Leader, t.LastLeader)) }

// Ended returns the number of groups that have ended on this node.
func (t *Topology) Ended() (n int) {
	for i := range t.Groups {
		if t.Groups[i].Ended != "" {
			n++
		}
	}
	return n
}

// Base returns the number of the group that a node reads policies and blocks everywhere from: the first one that it
// has.
func (t *Topology) Base() int {
	return max(0, slices.IndexFunc(t.Groups, func(g Group) bool { return g.Ended == "" && !g.Away }))
}

// GroupOf returns the group that owns a slot.
func (t *Topology) GroupOf(slot uint16) Group {
	return t.Groups[t.NumberOf(slot)]
}

// NumberOf returns the number of the group that owns a slot.
func (t *Topology) NumberOf(slot uint16) int { return hashslot.Group(slot, len(t.Groups)) }

// PrimaryOf returns the node that cluster clients see as the owner of a group's slots: its leader or, without one, the
// last known leader. It may be nil.
func (t *Topology) PrimaryOf(g Group) *Member { return t.Member(cmp.Or(g.Leader, g.LastLeader)) }

// Led returns the number of groups that this node leads, as far as it knows.
func (t *Topology) Led() int { return t.LedBy(t.Self) }

// LedBy returns the number of groups that the node with this id leads, as far as the observing node knows.
func (t *Topology) LedBy(id string) (n int) {
	for _, g := range t.Groups {
		if g.Leader != "" && g.Leader == id {
			n++
		}
	}
	return n
}

// Behind returns Group.Behind of the group for which it is greatest, of those that this node has.
func (t *Topology) Behind() (most uint64) {
	for _, g := range t.Groups {
		if !g.Away {
			most = max(most, g.Behind())
		}
	}
	return most
}

// Behind returns the number of entries that this node knows to be committed and has not applied.
func (g *Group) Behind() uint64 { return g.CommitIndex - min(g.AppliedIndex, g.CommitIndex) }

// Leaderless returns the number of groups without a known leader.
func (t *Topology) Leaderless() (n int) {
	for _, g := range t.Groups {
		if g.Leader == "" {
			n++
		}
	}
	return n
}

// Has reports whether a node has a replica of the group.
func (g *Group) Has(id string) bool {
	return slices.ContainsFunc(g.Members, func(m GroupMember) bool { return m.ID == id })
}

// Serves reports whether a node has a replica of the group that has caught up. In a cluster where every node has every
// group, each node counts as such a replica. While the replicas are unknown, no node does.
func (t *Topology) Serves(g *Group, id string) bool {
	return t.Replicas == 0 ||
		slices.ContainsFunc(g.Members, func(m GroupMember) bool { return m.ID == id && m.Voter })
}

// ReplicasOn returns the number of groups of which a node has a replica. It is -1 if none is known, and the replicas of
// some group are unknown.
func (t *Topology) ReplicasOn(id string) (n int) {
	if t.Replicas == 0 {
		return len(t.Groups)
	}
	unknown := 0
	for i := range t.Groups {
		switch g := &t.Groups[i]; {
		case g.Has(id):
			n++
		case g.Members == nil:
			unknown = -1
		}
	}
	return cmp.Or(n, unknown)
}

// FewestVoters returns the number of voters of the group that has the fewest, at most Replicas. It is 0 while the
// replicas of a group are unknown.
func (t *Topology) FewestVoters() int {
	if t.Replicas == 0 {
		return t.Count(IsVoter)
	}
	fewest := t.Replicas
	for i := range t.Groups {
		g := &t.Groups[i]
		fewest = min(fewest, t.Count(func(m *Member) bool { return t.Serves(g, m.ID) }))
	}
	return fewest
}

// BelowReplicas returns the number of groups with fewer voters that are up than Replicas, as far as this node knows.
func (t *Topology) BelowReplicas() (n int) {
	for i := range t.Groups {
		if t.VotersUp(&t.Groups[i]) < t.Replicas {
			n++
		}
	}
	return n
}

// VotersUp returns the number of voters of a group that this node sees as up.
func (t *Topology) VotersUp(g *Group) int {
	return t.Count(func(m *Member) bool {
		silent := func(of GroupMember) bool { return of.ID == m.ID && of.Silent }
		return m.Up && t.Serves(g, m.ID) && !slices.ContainsFunc(g.Members, silent)
	})
}

// LeadersText names the nodes that lead the groups, and says how many groups have no known leader. leaders has the ids
// of the leaders in the order of the groups; "" is unknown.
func LeadersText(leaders []string) string {
	none := 0
	var known []string
	for _, id := range leaders {
		switch {
		case id == "":
			none++
		case !slices.Contains(known, id):
			known = append(known, id)
		}
	}
	var parts []string
	if none > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d groups have no leader: nothing is decided for their keys", none,
			len(leaders)))
	}
	if len(known) > 0 {
		parts = append(parts, "led by "+strings.Join(known, ", "))
	}
	return strings.Join(parts, "; ")
}

// RoleText says how many of the groups a node leads, or what else it does, and of how many it has replicas unless of
// all. replicas is Topology.ReplicasOn of the node.
func RoleText(led, groups, replicas int, voter bool) string {
	text := "no vote yet"
	switch {
	case replicas == 0:
		return "no replicas"
	case replicas < 0:
		return "replicas unknown"
	case led > 0:
		text = fmt.Sprintf("leads %d of %d", led, groups)
	case voter:
		text = "follower"
	}
	if replicas < groups {
		text += fmt.Sprintf(", has %d of %d", replicas, groups)
	}
	return text
}

// ReplicasText says how many of the groups have fewer replicas than wanted. It returns "" if none has.
func ReplicasText(below, groups, wanted int) string {
	if below == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d groups have fewer than %d replicas that are up", below, groups, wanted)
}

// Count returns the number of nodes for which is returns true.
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

// NeverHeard reports whether this node has had no message from another member.
func (m *Member) NeverHeard() bool { return !m.Up && m.LastHeard == 0 }

// HasAddress reports whether the client address of the node is known.
func (m *Member) HasAddress() bool {
	_, _, ok := m.HostPort()
	return ok
}

// HostPort splits the client address. ok is false while the address is unknown.
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

// Reachable reports whether addr names a host and a port to which another machine can connect. Every address that a
// node gives to clients or nodes must be reachable: an empty or unspecified host, like 0.0.0.0, and port 0 are not.
func Reachable(addr string) bool {
	host, text, err := net.SplitHostPort(addr)
	port, errPort := strconv.ParseUint(text, 10, 16)
	ip := net.ParseIP(host)
	return err == nil && errPort == nil && port > 0 && host != "" && (ip == nil || !ip.IsUnspecified())
}
