package membership

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/raftstore/placement"
)

// Founder returns the address of the node that founds the cluster: the first one of --join that shall vote.
func (m *Membership) Founder(servers []raft.Server) string {
	follows := func(addr string) bool {
		return slices.ContainsFunc(servers, func(s raft.Server) bool {
			return s.Suffrage == raft.Nonvoter && string(s.Address) == addr
		})
	}
	at := slices.IndexFunc(m.JoinAddrs, func(addr string) bool { return !follows(addr) })
	return m.JoinAddrs[max(at, 0)]
}

// Founders returns this node and the nodes with the given statuses that can found a cluster with it. A node that the
// first group does not have is left out, and joins this group after the first one. It returns an error if one of the
// nodes belongs to a cluster.
func (m *Membership) Founders(found []host.Status) ([]raft.Server, error) {
	pristine := []raft.Server{m.Server()}
	zones := []placement.Node{{ID: m.Self, Zone: m.Zone}}
	for _, s := range found {
		if !s.Pristine {
			guards.FoundedAround.Hit()
			return nil, fmt.Errorf("%s belongs to a cluster that has no leader now", s.NodeID)
		}
		if err := m.checkGroups(s); err != nil {
			return nil, err
		}
		if m.First == nil || hasNode(m.First.Members(), s.NodeID) {
			pristine = append(pristine, raft.Server{
				ID: raft.ServerID(s.NodeID), Address: raft.ServerAddress(s.RaftAddr),
			})
			zones = append(zones, placement.Node{ID: s.NodeID, Zone: s.Zone})
		}
	}
	if m.First == nil && m.Replicas > 0 {
		m.chooseVoters(pristine, zones)
	}
	return pristine, nil
}

// chooseVoters lets only the nodes of the first group vote in it. If the founders are all nodes of --join, each node
// chooses the same voters: nodes with different orders of --join may all found the cluster. Otherwise only the first
// one of --join founds. It must vote, so the first group takes the place of a group that has it; see Place.
func (m *Membership) chooseVoters(servers []raft.Server, nodes []placement.Node) {
	placed := placement.Found(nodes, m.Groups, m.Replicas)
	voters := placed[0]
	if m.Expect < len(m.JoinAddrs) {
		if at := slices.IndexFunc(servers, m.isFirst); at >= 0 {
			voters = votersWith(string(servers[at].ID), placed)
		}
	}
	for i := range servers {
		if !slices.Contains(voters, string(servers[i].ID)) {
			servers[i].Suffrage = raft.Nonvoter
		}
	}
}

// isFirst reports whether a server is the first node of --join.
func (m *Membership) isFirst(s raft.Server) bool { return string(s.Address) == m.JoinAddrs[0] }

// votersWith returns the members of the first placed group that has the node id. If none has it, the node takes the
// place of the last member of group 0.
func votersWith(id string, placed [][]string) []string {
	at := slices.IndexFunc(placed, func(ids []string) bool { return slices.Contains(ids, id) })
	if at < 0 { // there are more nodes than replicas
		return append(slices.Clone(placed[0][:len(placed[0])-1]), id)
	}
	return placed[at]
}

// Place returns the nodes that found each group of the cluster, from the members of the first group, which this is.
// zones are the zones of the members. The first group has its voters already, and changes places with the group that
// would have them.
func Place(members []raft.Server, zones map[string]string, groups, replicas int) [][]string {
	var nodes []placement.Node
	var voters []string
	for _, s := range members {
		nodes = append(nodes, placement.Node{ID: string(s.ID), Zone: zones[string(s.ID)]})
		if s.Suffrage == raft.Voter {
			voters = append(voters, string(s.ID))
		}
	}
	placed := placement.Found(nodes, groups, replicas)
	same := func(ids []string) bool {
		lacks := func(id string) bool { return !slices.Contains(voters, id) }
		return len(ids) == len(voters) && !slices.ContainsFunc(ids, lacks)
	}
	if at := slices.IndexFunc(placed, same); at >= 0 {
		placed[0], placed[at] = placed[at], placed[0]
	}
	return placed
}

// foundWith bootstraps a cluster with nodes that belong to none, after all of them have recorded their invitation on
// disk.
func (m *Membership) foundWith(servers []raft.Server) error {
	for _, s := range servers {
		if string(s.ID) == m.Self {
			continue
		}
		if err := m.invite(string(s.Address), string(s.ID)); err != nil {
			return fmt.Errorf("%s could not be invited: %w", s.ID, err)
		}
	}
	return m.bootstrap(servers)
}

func (m *Membership) invite(addr, id string) error {
	client := m.Dial(addr, id)
	defer client.Close()
	ctx, cancel := context.WithTimeout(m.Life.Ctx, timers.AdminTimeout)
	defer cancel()
	code, answer, err := client.Call(ctx, calls.Invite, nil)
	if err != nil {
		return err
	}
	return calls.OutcomeOf(code, answer)
}

// AcceptInvitation allows this node to take part in the cluster that another node is about to bootstrap.
func (m *Membership) AcceptInvitation(from peer.Identity) error {
	if !m.Pristine() {
		guards.InvitedElsewhere.Hit()
		return fmt.Errorf("%q belongs to a cluster already", m.Self)
	}
	m.Log.Info("invited to found a cluster", "by", from.NodeID)
	return m.Identity.MarkInvited()
}

func (m *Membership) bootstrap(servers []raft.Server) error {
	if err := m.Identity.MarkInvited(); err != nil {
		return err
	}
	err := m.Raft.Await(m.Raft.BootstrapCluster(raft.Configuration{Servers: servers}))
	if err == nil {
		m.Log.Info("founding a cluster", "nodes", len(servers))
	}
	return err
}

// founds reports whether a node of the first group founds other groups. All founders were invited, so one that was not
// has lost its disk, also without a vote in the first group. It must not found these groups a second time.
func (m *Membership) founds(id string) bool {
	state, _ := m.FSM.LastArrival()
	return slices.ContainsFunc(state.Founding.Placed, func(ids []string) bool { return slices.Contains(ids, id) })
}
