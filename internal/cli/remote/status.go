package remote

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/internal/cli/terminal"
	"github.com/weir-project/weir/internal/millis"
	"github.com/weir-project/weir/limiter"
)

// Status is the reply to WEIR.CLUSTER STATUS.
type Status struct {
	ClusterID    string `redis:"cluster_id" json:"cluster_id"`
	Node         string `redis:"node" json:"node"`
	Leader       string `redis:"leader" json:"leader"`
	LastLeader   string `redis:"last_leader" json:"last_leader"`
	Term         uint64 `redis:"term" json:"term"`
	AppliedIndex uint64 `redis:"applied_index" json:"applied_index"`
	CommitIndex  uint64 `redis:"commit_index" json:"commit_index"`
	StaleMs      int64  `redis:"stale_ms" json:"stale_ms"`
	LogFormat    int    `redis:"log_format" json:"log_format"`
	// Replicas is how many replicas each group shall have; 0: one on every node.
	Replicas int          `redis:"replicas" json:"replicas,omitempty"`
	Nodes    []NodeStatus `redis:"-" json:"nodes"`
	// Groups lists the Raft groups. Leader, Term and the indexes above are those of the first group.
	Groups []GroupStatus `redis:"-" json:"groups"`
}

// GroupStatus is one Raft group in a Status. The indexes are of the node that answered.
type GroupStatus struct {
	FirstSlot    int    `redis:"first_slot" json:"first_slot"`
	LastSlot     int    `redis:"last_slot" json:"last_slot"`
	Leader       string `redis:"leader" json:"leader"`
	LastLeader   string `redis:"last_leader" json:"last_leader"`
	Term         uint64 `redis:"term" json:"term"`
	AppliedIndex uint64 `redis:"applied_index" json:"applied_index"`
	CommitIndex  uint64 `redis:"commit_index" json:"commit_index"`
	// Ended is why the group has ended on the node that answered, while other nodes serve it; "": it has not.
	Ended string `redis:"ended" json:"ended,omitempty"`
	// Away tells that the node that answered has no replica of the group. These fields are empty without
	// Status.Replicas.
	Away       bool     `redis:"away" json:"away,omitempty"`
	ReplicasUp *count   `redis:"replicas_up" json:"replicas_up,omitempty"`
	Replicas   replicas `redis:"replicas" json:"replicas,omitempty"`
}

// ReplicaStatus is one replica of a group. Without a vote it has not caught up yet.
type ReplicaStatus struct {
	ID         string `redis:"id" json:"id"`
	Voter      bool   `redis:"voter" json:"voter"`
	Silent     bool   `redis:"silent" json:"silent,omitempty"` // the group hears nothing from it
	LagEntries uint64 `redis:"lag_entries" json:"lag_entries"`
}

type replicas []ReplicaStatus

// RedisScan implements redis.Scanner.
func (r *replicas) RedisScan(src any) (err error) {
	items, err := redis.Values(src, nil)
	if err == nil {
		*r, err = readMaps[ReplicaStatus](items)
	}
	return err
}

// NodeStatus is one node in a Status.
type NodeStatus struct {
	ID           string `redis:"id" json:"id"`
	ClientAddr   string `redis:"client_addr" json:"client_addr"`
	RaftAddr     string `redis:"raft_addr" json:"raft_addr"`
	Voter        bool   `redis:"voter" json:"voter"`
	Up           bool   `redis:"up" json:"up"`
	AppliedIndex uint64 `redis:"applied_index" json:"applied_index"`
	HeardMs      int64  `redis:"heard_ms" json:"heard_ms"`
	LagEntries   uint64 `redis:"lag_entries" json:"lag_entries"`
	ClockAheadMs int64  `redis:"clock_ahead_ms" json:"clock_ahead_ms"`
	LogFormat    int    `redis:"log_format" json:"log_format"`
	// Of a cluster with Status.Replicas. Replicas is -1 while it is unknown.
	Zone     string `redis:"zone" json:"zone,omitempty"`
	Replicas *count `redis:"replicas" json:"replicas,omitempty"`
	Leaders  *count `redis:"leaders" json:"leaders,omitempty"`
}

// count is a number that only some clusters have. JSON shows a 0, and omits a number that there is not.
type count int

// RedisScan implements redis.Scanner.
func (c *count) RedisScan(src any) error {
	n, err := redis.Int(src, nil)
	*c = count(n)
	return err
}

func (c *count) or(none int) int {
	if c == nil {
		return none
	}
	return int(*c)
}

// ReadStatus reads the reply to WEIR.CLUSTER STATUS. A node of version 0.1.0 with one group lists no groups: what it
// says about its leader is about that group.
func ReadStatus(reply any) (s Status, err error) {
	fields, err := redis.Values(reply, nil)
	if err == nil {
		err = redis.ScanStruct(fields, &s)
	}
	if err != nil {
		return s, err
	}
	nodes, err := readAll[NodeStatus](fields, "nodes")
	groups, errGroups := readAll[GroupStatus](fields, "groups")
	if errors.Is(errGroups, errNotListed) {
		errGroups = nil
		groups = []GroupStatus{{LastSlot: lastSlot, Leader: s.Leader, LastLeader: s.LastLeader, Term: s.Term,
			AppliedIndex: s.AppliedIndex, CommitIndex: s.CommitIndex}}
	}
	s.Nodes, s.Groups = nodes, groups
	return s, cmp.Or(err, errGroups)
}

// lastSlot is the last hash slot of a cluster, as in Redis Cluster.
const lastSlot = 16383

var errNotListed = errors.New("not in the status")

// readAll reads a list of maps, the value of a name in a list of names and values.
func readAll[T any](fields []any, wanted string) (all []T, err error) {
	err = fmt.Errorf("%s: %w", wanted, errNotListed)
	var items []any
	for i := 0; i+1 < len(fields); i += 2 {
		if name, _ := redis.String(fields[i], nil); name == wanted {
			items, err = redis.Values(fields[i+1], nil)
		}
	}
	if err != nil {
		return nil, err
	}
	return readMaps[T](items)
}

func readMaps[T any](items []any) (all []T, err error) {
	for _, item := range items {
		var v T
		values, errValues := redis.Values(item, nil)
		if err = cmp.Or(err, errValues); err == nil {
			err = redis.ScanStruct(values, &v)
		}
		all = append(all, v)
	}
	return all, err
}

// WriteTable writes the status as a table.
func (s *Status) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "cluster\t%s\n", s.ClusterID)
	fmt.Fprintf(t, "keys\t%s\n", s.LeadersText())
	fmt.Fprintf(t, "log\tform %d\n", s.LogFormat)
	fmt.Fprintf(t, "asked\t%s, committed %d, applied %d%s\n\n",
		s.Node, s.CommitIndex, s.AppliedIndex, StaleText(s.StaleMs))
	fmt.Fprintln(t, "NODE\tROLE\tUP\tCLIENTS\tNODES\tAPPLIED\tREADS\tHEARD"+s.column("ZONE"))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s%s\n",
			n.ID, s.Role(n), UpText(n.Up), cmp.Or(n.ClientAddr, "unknown"), n.RaftAddr, n.AppliedIndex,
			n.reads(), s.heard(n), s.column(cmp.Or(terminal.PlainText(n.Zone), "-")))
	}
	s.writeGroups(t)
	return t.Flush()
}

// column returns a further column of a table, which only a cluster with Replicas has.
func (s *Status) column(text string) string {
	if s.Replicas == 0 {
		return ""
	}
	return "\t" + text
}

// writeGroups writes a table of the groups. BEHIND is how many entries the node that answered has not applied.
func (s *Status) writeGroups(t io.Writer) {
	fmt.Fprintln(t, "\nGROUP\tSLOTS\tLEADER\tTERM\tBEHIND"+s.column("REPLICAS"))
	for i := range s.Groups {
		g := &s.Groups[i]
		if g.Ended != "" {
			fmt.Fprintf(t, "%d\t%d-%d\tended on %s: %s\n", i, g.FirstSlot, g.LastSlot, s.Node,
				terminal.PlainText(g.Ended))
			continue
		}
		behind := fmt.Sprint(g.CommitIndex - min(g.AppliedIndex, g.CommitIndex))
		if g.Away {
			behind = "-"
		}
		fmt.Fprintf(t, "%d\t%d-%d\t%s\t%d\t%s%s\n", i, g.FirstSlot, g.LastSlot,
			leaderText(g.Leader, g.LastLeader), g.Term, behind, s.column(s.replicasText(g)))
	}
}

// replicasText names the replicas of a group, and says how many of those that vote are up.
func (s *Status) replicasText(g *GroupStatus) string {
	var names []string
	for _, r := range g.Replicas {
		name := terminal.PlainText(r.ID)
		switch {
		case slices.ContainsFunc(s.Nodes, func(n NodeStatus) bool { return n.ID == r.ID && !n.Up }):
			name += " (down)"
		case r.Silent:
			name += " (silent)"
		case !r.Voter:
			name += fmt.Sprintf(" (catches up, %d behind)", r.LagEntries)
		case r.LagEntries > 0:
			name += fmt.Sprintf(" (%d behind)", r.LagEntries)
		}
		names = append(names, name)
	}
	up := g.ReplicasUp.or(0)
	return fmt.Sprintf("%d of %d up: %s", up, max(up, s.Replicas), cmp.Or(strings.Join(names, ", "), "unknown"))
}

// BelowReplicas returns the number of groups with fewer replicas that are up than Replicas.
func (s *Status) BelowReplicas() (n int) {
	for i := range s.Groups {
		if s.Groups[i].ReplicasUp.or(0) < s.Replicas {
			n++
		}
	}
	return n
}

// Leaderless returns the number of groups without a leader. A group that has ended on the node does not count, because
// the node knows no leader of it.
func (s *Status) Leaderless() (n int) {
	for i := range s.Groups {
		if s.Groups[i].Leader == "" && s.Groups[i].Ended == "" {
			n++
		}
	}
	return n
}

// LeadersText names the nodes that lead the groups, and says how many groups have none or have ended on the node.
func (s *Status) LeadersText() string {
	var leaders []string
	ended := 0
	for i := range s.Groups {
		if s.Groups[i].Ended != "" {
			ended++
			continue
		}
		leaders = append(leaders, terminal.PlainText(s.Groups[i].Leader))
	}
	text := limiter.LeadersText(leaders)
	if ended > 0 {
		text += fmt.Sprintf("; %d of %d groups have ended on %s", ended, len(s.Groups), s.Node)
	}
	if below := limiter.ReplicasText(s.BelowReplicas(), len(s.Groups), s.Replicas); below != "" {
		text += "; " + below
	}
	return text
}

// LedBy returns the number of groups that a node leads.
func (s *Status) LedBy(id string) (n int) {
	for i := range s.Groups {
		if s.Groups[i].Leader == id && id != "" {
			n++
		}
	}
	return n
}

func leaderText(leader, last string) string {
	switch {
	case leader != "":
		return terminal.PlainText(leader)
	case last != "":
		return "none, the last was " + terminal.PlainText(last)
	}
	return "none"
}

// Role says how many groups a node leads, or what else it does.
func (s *Status) Role(n *NodeStatus) string {
	return limiter.RoleText(s.LedBy(n.ID), len(s.Groups), n.Replicas.or(len(s.Groups)), n.Voter)
}

// reads returns the newest form of the log that a node can read.
func (n *NodeStatus) reads() string {
	if n.LogFormat == 0 {
		return "unknown"
	}
	return fmt.Sprintf("form %d", n.LogFormat)
}

func (s *Status) heard(n *NodeStatus) string {
	if n.ID == s.Node {
		return "this node"
	}
	return n.Heard()
}

// Heard says when the answering node last heard of another node.
func (n *NodeStatus) Heard() string {
	if !n.Up && n.HeardMs == 0 { // a node counts as up for a while after a message
		return "never"
	}
	return millis.Duration(n.HeardMs).String() + " ago"
}

// UpText returns text for whether a node is up.
func UpText(up bool) string {
	if up {
		return "yes"
	}
	return "no"
}

// StaleText describes the maximum age of an answer. It returns "" for a linearizable answer.
func StaleText(ms int64) string {
	switch {
	case ms == 0:
		return ""
	case ms >= limiter.UnknownAge.Milliseconds():
		return ", stale: age unknown"
	}
	return fmt.Sprintf(", stale: %v", millis.Duration(ms))
}

// AllUp reports whether every group has a leader and the cluster has this many nodes that are up.
func (s *Status) AllUp(nodes int) bool {
	for i := range s.Nodes {
		if s.Nodes[i].Up {
			nodes--
		}
	}
	return s.Leaderless() == 0 && nodes <= 0
}
