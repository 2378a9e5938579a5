package commands

import (
	"strconv"
	"strings"
	"time"

	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/info"
	"github.com/weir-project/weir/server/resp"
)

// sentinelCommand answers clients that look for the primary through Redis' Sentinel. Every node is a Sentinel of one
// primary, which is the leader. See https://redis.io/docs/latest/develop/reference/sentinel-clients/.
func sentinelCommand() *command {
	named := func(name, summary string, run func(*Session, *sentinel)) *command {
		return &command{name: name, arity: 3, syntax: "name", summary: summary,
			run: func(s *Session, args [][]byte) {
				if string(args[2]) != s.srv.cfg.SentinelName {
					s.fail(resp.Error("ERR No such master with that name: name must be " + s.srv.cfg.SentinelName +
						" (--sentinel-name), not " + quote.Text(args[2])))
					return
				}
				run(s, newSentinel(s.srv, s.about.LocalAddr))
			}}
	}
	replicas := func(s *Session, v *sentinel) { v.writeNodes(s.Reply, v.others(v.primary), v.writeReplica) }
	return &command{
		name: "SENTINEL", arity: -2, group: groupCluster, flags: "loading stale",
		summary: "Commands for clients that find the primary through Sentinel",
		details: "Every node is a Sentinel. The primary is the leader (of the first Raft group), or while none is " +
			"known the last one, with the flags `s_down,o_down`. A new leader is published on `+switch-master`, and " +
			"its replicas on `+slave`. Maps have only the fields of Redis whose values weir knows.",
		subs: []*command{
			{name: "GET-MASTER-ADDR-BY-NAME", arity: 3, syntax: "name", summary: "The address of the primary",
				reply: "Host and port, or nil for another name.", run: runGetMasterAddr},
			{name: "MASTERS", arity: 2, summary: "The primary, in a list", run: func(s *Session, _ [][]byte) {
				v := newSentinel(s.srv, s.about.LocalAddr)
				v.writeNodes(s.Reply, v.primaries(), v.writePrimary)
			}},
			named("MASTER", "The primary", func(s *Session, v *sentinel) {
				if v.primary == nil {
					s.fail(limiter.ErrClusterDown)
					return
				}
				v.writePrimary(s.Reply, v.primary)
			}),
			named("REPLICAS", "The other nodes", replicas),
			named("SLAVES", "The same as SENTINEL REPLICAS", replicas),
			named("SENTINELS", "The nodes except this one", func(s *Session, v *sentinel) {
				v.writeNodes(s.Reply, v.others(v.t.Member(v.t.Self)), v.writeSentinel)
			}),
			named("CKQUORUM", "Whether enough nodes are up to choose a leader", runCheckQuorum),
			{name: "MYID", arity: 2, summary: "The id of this node", run: runClusterMyID},
		},
	}
}

// sentinel is the cluster as SENTINEL shows it. A server that runs alone is a cluster of one node.
type sentinel struct {
	name    string
	t       *limiter.Topology
	primary *limiter.Member // nil while none is known
	down    bool            // no leader is known
}

// newSentinel returns the cluster as srv sees it. here is the address of a server that runs alone.
func newSentinel(srv *Shared, here string) *sentinel {
	name := srv.cfg.SentinelName
	if srv.Replica == nil {
		self := limiter.Member{ID: srv.runID, ClientAddr: here, Voter: true, Up: true}
		t := &limiter.Topology{Self: self.ID, Leader: self.ID, Nodes: []limiter.Member{self}}
		v := &sentinel{name: name, t: t}
		if self.HasAddress() { // a Unix socket has none
			v.primary = &t.Nodes[0]
		}
		return v
	}
	t := srv.Replica.Topology()
	v := &sentinel{name: name, t: t, primary: t.Primary(), down: t.Leader == ""}
	if !v.primary.HasAddress() {
		v.primary = nil
	}
	return v
}

// primaries returns the primary if it is known.
func (v *sentinel) primaries() []*limiter.Member {
	if v.primary == nil {
		return nil
	}
	return []*limiter.Member{v.primary}
}

// others returns the nodes with an address, except one.
func (v *sentinel) others(but *limiter.Member) (all []*limiter.Member) {
	for i := range v.t.Nodes {
		if m := &v.t.Nodes[i]; m != but && m.HasAddress() {
			all = append(all, m)
		}
	}
	return all
}

// votes reports whether a node votes for the primary.
func (v *sentinel) votes(m *limiter.Member) bool {
	if v.t.Replicas == 0 {
		return m.Voter
	}
	return v.t.Serves(&v.t.Groups[0], m.ID)
}

func runGetMasterAddr(s *Session, args [][]byte) {
	v := newSentinel(s.srv, s.about.LocalAddr)
	host, port, ok := v.primary.HostPort()
	if !ok || string(args[2]) != v.name {
		s.NullArray()
		return
	}
	s.Strings([]string{host, strconv.Itoa(port)})
}

// runCheckQuorum answers in the words of Redis, because programs that watch it compare them.
func runCheckQuorum(s *Session, v *sentinel) {
	voters := v.t.Count(v.votes)
	up := v.t.Count(func(m *limiter.Member) bool { return v.votes(m) && (m.Up || m.ID == v.t.Self) })
	switch {
	case up <= voters/2:
		s.fail(resp.Error("NOQUORUM " + strconv.Itoa(up) + " usable Sentinels. Not enough available Sentinels to " +
			"reach the majority and authorize a failover"))
	case v.down:
		s.fail(limiter.ErrClusterDown)
	default:
		s.Simple("OK " + strconv.Itoa(up) + " usable Sentinels. Quorum and failover authorization can be reached")
	}
}

// writeNodes writes a list with one map for each node.
func (v *sentinel) writeNodes(w resp.Reply, nodes []*limiter.Member, write func(resp.Reply, *limiter.Member)) {
	w.Array(len(nodes))
	for _, m := range nodes {
		write(w, m)
	}
}

func (v *sentinel) writePrimary(w resp.Reply, m *limiter.Member) {
	w.Map(10)
	writeSentinelNode(w, m, v.name, "master", v.down)
	w.Pair("role-reported", "master")
	w.Pair("config-epoch", strconv.FormatUint(v.t.Term, 10))
	w.Pair("num-slaves", strconv.Itoa(len(v.others(v.primary))))
	w.Pair("num-other-sentinels", strconv.Itoa(len(v.t.Nodes)-1))
	w.Pair("quorum", strconv.Itoa(v.t.Count(v.votes)/2+1))
}

func (v *sentinel) writeReplica(w resp.Reply, m *limiter.Member) {
	host, port, _ := v.primary.HostPort()
	link := "ok"
	if v.down {
		link = "err"
	}
	w.Map(10)
	writeSentinelNode(w, m, m.ClientAddr, "slave", !m.Up && m.ID != v.t.Self)
	w.Pair("role-reported", "slave")
	w.Pair("master-link-status", link)
	w.Pair("master-host", host)
	w.Pair("master-port", strconv.Itoa(port))
	w.Pair("slave-repl-offset", strconv.FormatUint(m.AppliedIndex, 10))
}

func (v *sentinel) writeSentinel(w resp.Reply, m *limiter.Member) {
	w.Map(5)
	writeSentinelNode(w, m, info.NodeID(m.ID), "sentinel", !m.Up && m.ID != v.t.Self)
}

// writeSentinelNode writes the five fields that each node has.
func writeSentinelNode(w resp.Reply, m *limiter.Member, name, role string, down bool) {
	host, port, _ := m.HostPort()
	if down {
		role += ",s_down"
		if strings.HasPrefix(role, "master") {
			role += ",o_down"
		}
	}
	w.Pair("name", name)
	w.Pair("ip", host)
	w.Pair("port", strconv.Itoa(port))
	w.Pair("runid", info.NodeID(m.ID))
	w.Pair("flags", role)
}

// lookForPrimary is how often AnnouncePrimaries looks. An election takes longer, and clients that miss the message look
// by themselves when a command fails.
const lookForPrimary = 100 * time.Millisecond

// AnnouncePrimaries publishes each change of the leader to the clients that SENTINEL serves, until the server stops.
// Only a node of a cluster has such changes.
func (srv *Shared) AnnouncePrimaries() {
	for known := ""; !srv.Draining.Load(); srv.Sleep(lookForPrimary) {
		known = srv.announcePrimary(known)
	}
}

// announcePrimary publishes the primary if it is not the known one, and returns its address. "" is no known primary.
func (srv *Shared) announcePrimary(known string) string {
	v := newSentinel(srv, "")
	if v.primary == nil || v.primary.ClientAddr == known {
		return known
	}
	primary := spaced(v.primary.ClientAddr)
	var replicas []string
	for _, m := range v.others(v.primary) {
		replicas = append(replicas, "slave "+m.ClientAddr+" "+spaced(m.ClientAddr)+" @ "+v.name+" "+primary)
	}
	if known != "" {
		srv.Events.Switched(v.name+" "+spaced(known)+" "+primary, replicas)
	}
	return v.primary.ClientAddr
}

// spaced returns an address as host and port with a space between.
func spaced(addr string) string {
	m := limiter.Member{ClientAddr: addr}
	host, port, _ := m.HostPort()
	return host + " " + strconv.Itoa(port)
}
