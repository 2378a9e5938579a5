package doctor

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/weir-project/weir/internal/cli/healthcheck"
	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/internal/millis"
)

const (
	// lagMax is how many entries a node may be behind. The alert WeirFollowerLags has the same bound.
	lagMax = 10_000
	// clockAheadMax is how far a node's clock may differ from this node's. The alert WeirClockSkew has the same
	// bound.
	clockAheadMax = time.Second
	// replaceNode is the advice for a node on which a group has ended.
	replaceNode = "check that the other nodes serve, then replace this node: docs/clustering.md#several-raft-groups"
)

func (d *Subject) lookAtCluster(up *running) []Finding {
	switch {
	case up != nil && up.info["cluster_enabled"] == "1":
		return d.lookAtMembers(up)
	case up != nil && d.Clustered:
		return []Finding{{Wrong, "cluster", "the server runs alone, but the flags name a node of a cluster",
			"restart the server with these flags"}}
	case !d.Clustered:
		return []Finding{{Fine, "cluster", "a single server", ""}}
	case len(d.Join) == 0:
		return []Finding{{Fine, "cluster", "a cluster of one", ""}}
	}
	return d.lookAtPeers()
}

// lookAtMembers asks the server for the members of its cluster.
func (d *Subject) lookAtMembers(up *running) []Finding {
	reply, err := up.conn.Do("WEIR.CLUSTER", "STATUS")
	if err != nil {
		return []Finding{{Doubt, "cluster", "the server answers " + oneLine(err),
			"log in as a user that may send WEIR.CLUSTER: --user and --password-file"}}
	}
	status, err := remote.ReadStatus(reply)
	if err != nil {
		return []Finding{{Wrong, "cluster", "the server sent an unexpected status: " + oneLine(err),
			"use the same version of weir as the server"}}
	}
	return judgeStatus(&status)
}

// judgeStatus reports the problems of a cluster, and whether a majority is up.
func judgeStatus(s *remote.Status) (found []Finding) {
	if s.Leaderless() > 0 {
		found = append(found, Finding{Wrong, "cluster", s.LeadersText(),
			"start nodes until a majority is up, and check that they reach each other"})
	}
	for i := range s.Groups {
		if g := &s.Groups[i]; g.Ended != "" {
			found = append(found, Finding{Wrong, "cluster", fmt.Sprintf(
				"the group of the slots %d to %d has ended on %s: %s",
				g.FirstSlot, g.LastSlot, s.Node, oneLine(errors.New(g.Ended))), replaceNode})
		}
	}
	up, voters := 0, 0
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Voter {
			voters++
			if n.Up {
				up++
			}
		}
		found = append(found, judgeNode(n)...)
	}
	said := fmt.Sprintf("%d of %d voters are up; %s", up, voters, s.LeadersText())
	if s.Node != "" {
		said += ", according to " + s.Node
	}
	majority := voters/2 + 1
	switch {
	case s.BelowReplicas() > 0: // said names them
		return append(found, Finding{Doubt, "cluster", said,
			"start the nodes that are down: weir cluster status names the replicas of each group"})
	case s.Replicas > 0: // a majority of all nodes says nothing about the groups
		return append(found, Finding{Fine, "cluster", said, ""})
	case up < majority:
		return append(found, Finding{Wrong, "cluster", said, fmt.Sprintf("start nodes until %d are up", majority)})
	case up == majority && voters > 1:
		return append(found,
			Finding{Doubt, "cluster", said, "the next failure stops all decisions: start the other nodes"})
	case voters > 1 && voters%2 == 0:
		return append(found,
			Finding{Doubt, "cluster", said,
				"add a node: an even number of voters tolerates no more failures than one voter less"})
	}
	return append(found, Finding{Fine, "cluster", said, ""})
}

// judgeNode reports the problems of one node, or nothing if all is well.
func judgeNode(n *remote.NodeStatus) (found []Finding) {
	ahead := millis.Duration(n.ClockAheadMs)
	switch {
	case !n.Up:
		return []Finding{{Doubt, "cluster", fmt.Sprintf("%s was last heard of: %s", n.ID, n.Heard()),
			"start it, or check that " + n.RaftAddr + " can be reached"}}
	case n.LagEntries > lagMax:
		found = append(found, Finding{Doubt, "cluster", fmt.Sprintf("%s is %d entries behind", n.ID, n.LagEntries),
			"check its disk, its CPU and its network"})
	}
	if ahead.Abs() > clockAheadMax {
		found = append(found, Finding{Doubt, "cluster",
			fmt.Sprintf("the clock of %s is %v ahead of this node's", n.ID, ahead), lookAfterNTP})
	}
	return found
}

// lookAtPeers connects to the nodes that a start would contact.
func (d *Subject) lookAtPeers() []Finding {
	var silent []string
	for _, addr := range d.Join {
		if addr == d.RaftAddr {
			continue
		}
		conn, err := net.DialTimeout("tcp", addr, healthcheck.Timeout)
		if err != nil {
			silent = append(silent, addr)
			continue
		}
		conn.Close()
	}
	said := fmt.Sprintf("%d nodes in --join", len(d.Join))
	switch {
	case len(silent) > 0:
		return []Finding{{Doubt, "cluster", said + ", no node answers at " + strings.Join(silent, ", "),
			"start them, or check that this machine can reach them"}}
	case len(d.Join)%2 == 0 && slices.Contains(d.Join, d.RaftAddr): // else this node joins an existing cluster
		return []Finding{{Doubt, "cluster", said,
			"use an odd number: an even number tolerates no more failures than one node less"}}
	}
	return []Finding{{Fine, "cluster", said + ", the others answer", ""}}
}
