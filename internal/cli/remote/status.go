package remote

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/internal/cli/terminal"
	"github.com/weir-project/weir/limiter"
)

// Status is the reply to WEIR.CLUSTER STATUS.
type Status struct {
	ClusterID    string       `redis:"cluster_id" json:"cluster_id"`
	Node         string       `redis:"node" json:"node"`
	Leader       string       `redis:"leader" json:"leader"`
	LastLeader   string       `redis:"last_leader" json:"last_leader"`
	Term         uint64       `redis:"term" json:"term"`
	AppliedIndex uint64       `redis:"applied_index" json:"applied_index"`
	CommitIndex  uint64       `redis:"commit_index" json:"commit_index"`
	StaleMs      int64        `redis:"stale_ms" json:"stale_ms"`
	LogFormat    int          `redis:"log_format" json:"log_format"`
	Nodes        []NodeStatus `redis:"-" json:"nodes"`
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
}

var errNoNodes = errors.New("the status lists no nodes")

// ReadStatus reads the reply to WEIR.CLUSTER STATUS.
func ReadStatus(reply any) (s Status, err error) {
	fields, err := redis.Values(reply, nil)
	if err == nil {
		err = redis.ScanStruct(fields, &s)
	}
	if err != nil {
		return s, err
	}
	nodes, err := nodesOf(fields)
	for _, node := range nodes {
		var n NodeStatus
		values, errValues := redis.Values(node, nil)
		if err = cmp.Or(err, errValues); err == nil {
			err = redis.ScanStruct(values, &n)
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s, err
}

// nodesOf finds the value of nodes in a list of names and values.
func nodesOf(fields []any) ([]any, error) {
	for i := 0; i+1 < len(fields); i += 2 {
		if name, _ := redis.String(fields[i], nil); name == "nodes" {
			return redis.Values(fields[i+1], nil)
		}
	}
	return nil, errNoNodes
}

// WriteTable writes the status as a table.
func (s *Status) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "cluster\t%s\nleader\t%s\nterm\t%d\nlog\tform %d\n", s.ClusterID,
		s.leaderName(), s.Term, s.LogFormat)
	fmt.Fprintf(t, "asked\t%s, committed %d, applied %d%s\n\n",
		s.Node, s.CommitIndex, s.AppliedIndex, StaleText(s.StaleMs))
	fmt.Fprintln(t, "NODE\tROLE\tUP\tCLIENTS\tNODES\tAPPLIED\tREADS\tHEARD")
	for i := range s.Nodes {
		n := &s.Nodes[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n",
			n.ID, s.role(n), UpText(n.Up), cmp.Or(n.ClientAddr, "unknown"), n.RaftAddr, n.AppliedIndex,
			n.reads(), s.heard(n))
	}
	return t.Flush()
}

func (s *Status) leaderName() string {
	switch {
	case s.Leader != "":
		return terminal.PlainText(s.Leader)
	case s.LastLeader != "":
		return "none, the last was " + terminal.PlainText(s.LastLeader)
	}
	return "none"
}

func (s *Status) role(n *NodeStatus) string {
	switch {
	case n.ID == s.Leader:
		return "leader"
	case n.Voter:
		return "follower"
	}
	return "no vote yet"
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
	return (time.Duration(n.HeardMs) * time.Millisecond).String() + " ago"
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
	return fmt.Sprintf(", stale: %v", time.Duration(ms)*time.Millisecond)
}

// AllUp reports whether the cluster has a leader and this many nodes that are up.
func (s *Status) AllUp(nodes int) bool {
	for i := range s.Nodes {
		if s.Nodes[i].Up {
			nodes--
		}
	}
	return s.Leader != "" && nodes <= 0
}
