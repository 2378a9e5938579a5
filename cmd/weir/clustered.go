package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/cli/cmdline"
	"github.com/weir-project/weir/internal/cli/listener"
	"github.com/weir-project/weir/internal/cli/tracing"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/router"
)

// clusterFlags configure a node of a cluster.
type clusterFlags struct {
	NodeID     string   `name:"node-id" placeholder:"ID" help:"Name of this node in its cluster. Without a name, weir is a server that runs alone. A node that lost its data directory is a new node: remove the old one from the cluster, and the node joins under a new name derived from this one."`
	RaftAddr   string   `address:"" default:"127.0.0.1:6390" placeholder:"HOST:PORT" help:"Address by which the other nodes reach this one. Only this machine by default; beyond it certificates or a cluster secret are required."`
	RaftListen string   `address:"listen" placeholder:"HOST:PORT" help:"Address to listen on for other nodes, if it differs from --raft-addr, like 0.0.0.0:6390 in a container."`
	Join       []string `address:"" placeholder:"HOST:PORT" help:"Addresses for nodes (--raft-addr) of all nodes, in the same order on every node. A cluster of one names only its own. Ignored once this node belongs to a cluster."`
	Expect     int      `least:"1" help:"Number of nodes that must be up before they bootstrap the cluster: all of --join by default, and always more than half of them. With fewer than all, two clusters can form in one case, which docs/clustering.md describes."`
	Advertise  string   `address:"" placeholder:"HOST:PORT" help:"Address by which clients reach this node, for cluster clients and MOVED; --tls-listen by default if it is set, else --listen. A node that listens on all addresses gives the host of --raft-addr."`
	Redirect   string   `default:"forward" enum:"forward,moved" help:"How a follower handles a decision: forward it to the leader, or answer MOVED."`

	ClusterSecret     string `placeholder:"SECRET" help:"Secret that another node must know to speak to this node. Other users of this machine can read it from the process list: the file is better."`
	ClusterSecretFile string `placeholder:"FILE" help:"File that contains the cluster secret."`

	RaftTLSCertFile string `name:"raft-tls-cert-file" placeholder:"FILE" help:"Certificate of this node, for TLS between nodes. One of its names must be the node id, as a DNS name, or weir://node/ID as a URI; it is read again when it is replaced."`
	RaftTLSKeyFile  string `name:"raft-tls-key-file" placeholder:"FILE" help:"Private key of that certificate."`
	RaftTLSCAFile   string `name:"raft-tls-ca-file" placeholder:"FILE" help:"Certificates of the authorities that sign certificates of nodes. They must sign no other certificates."`

	Durability     string           `enum:",fsync,os,memory" default:"" help:"When a decision counts as written, in a cluster: fsync (the default) on a majority's disks, os in a majority's page caches, memory in a majority's memory. Without --node-id it makes this server a cluster of one."`
	RaftHeartbeat  time.Duration    `default:"750ms" help:"A node that hears nothing from its leader for once to twice this time asks for an election. Choose longer than the worst pause of disk or processor. The default lets decisions continue within three seconds after a leader died."`
	MaxDecisionAge time.Duration    `least:"1ms" default:"2s" help:"Maximum age of an answer. weir answers UNKNOWN instead of an older answer, because a late admission would add a burst to the units that were admitted since."`
	SnapshotBytes  cmdline.ByteSize `least:"1kb" default:"64mb" help:"Size of the log after which a snapshot is written. A restart replays at most about as much."`

	Groups int `least:"1" default:"1" help:"Number of Raft groups of a new cluster, a power of two up to 1024. Each group decides for a part of the keys, under its own leader. The number is stored: later starts ignore the flag."`

	Replicas int    `least:"0" default:"0" help:"Number of nodes that have a replica of each Raft group of a new cluster: 1, 3 or 5. With 0 every node has one of every group. The number is stored: later starts ignore the flag."`
	Zone     string `placeholder:"NAME" help:"Where this node is, such as a zone of a data centre. The replicas of a group are in different zones where that is possible."`

	TestDial       map[string]string `hidden:"" mapsep:"," help:"For tests: dial another address instead of a node's own."`
	TestWallOffset time.Duration     `hidden:"" help:"For tests: shift the wall clock."`
	testFaults     `embed:""`
}

// clustered reports whether the server shall be a node of a cluster.
func (f *clusterFlags) clustered() bool { return f.NodeID != "" || f.Durability != "" }

// soloID is the id of the node in a cluster of one.
const soloID = "solo"

// openNode bounds the heap and starts the limiter that the flags describe: alone or in a cluster.
func (s *serveCmd) openNode(log *slog.Logger, at *ports, traces *tracing.Traces) (node, error) {
	progress := &persistence.Progress{}
	defer at.whileLoading(progress)()
	memory := machineMemory(os.DirFS("/"))
	watchCollector(memory)
	if !s.clustered() {
		return orNil(persistence.Open(s.nodeOptions(log, memory, progress)))
	}
	o, err := s.clusterOptions(log, memory, at)
	if err != nil {
		return nil, err
	}
	o.OnEntry, o.Progress = traces.OnEntry(), progress
	return orNil(router.Open(o))
}

// orNil returns an opened node as an interface that is nil after an error.
func orNil[T node](n T, err error) (node, error) {
	if err != nil {
		return nil, err
	}
	return n, nil
}

func (s *serveCmd) clusterOptions(log *slog.Logger, memory int64, at *ports) (raftstore.Options, error) {
	if s.DataDir == "" && s.Durability != string(raftstore.Memory) {
		return raftstore.Options{},
			errors.New("--data-dir must not be empty for a node of a cluster: its votes and its log must survive a " +
				"restart (only --durability memory needs no directory)")
	}
	secret, err := cmdline.SecretFrom("cluster-secret", s.ClusterSecret, s.ClusterSecretFile)
	if err != nil {
		return raftstore.Options{}, err
	}
	faults, err := s.faults()
	if err != nil {
		return raftstore.Options{}, err
	}
	o := raftstore.Options{
		NodeID: s.NodeID, DataDir: s.DataDir, Join: s.Join, Expect: s.Expect, Secret: []byte(secret),
		RaftAddr: s.RaftAddr, ClientAddr: s.Advertise,
		Durability: raftstore.Durability(s.Durability), Heartbeat: s.RaftHeartbeat,
		MaxDecisionAge: s.MaxDecisionAge, MaxDowntimeCredit: s.MaxDowntimeCredit, MaxCalendarStep: s.MaxCalendarStep,
		SnapshotBytes: int64(s.SnapshotBytes),
		Zone:          s.Zone, Table: s.tableOptions(memory), MaxValueBytes: int(s.MaxValueBytes),
		TestClock: s.TestClock, Logger: log, Faults: faults,
	}
	if o.NodeID == "" {
		o.NodeID = soloID
	}
	if o.ClientAddr == "" {
		listens := at.clients().String()
		o.ClientAddr = advertised(listens, s.RaftAddr)
		if !listener.IsLoopback(listens) && listener.IsLoopback(o.ClientAddr) {
			log.Warn("cluster clients on other machines cannot use the address that this node gives them: "+
				"give --advertise the address by which they reach it", "address", o.ClientAddr, "listen", listens)
		}
	}
	o.WebURL = pageURL(at.webURL(), o.ClientAddr)
	o.Source = s.source()
	if len(s.TestDial) > 0 {
		o.Dialer = s.dialVia
	}
	if err := s.certifyNode(&o, log); err != nil {
		return o, err
	}
	if err := s.checkRaftExposure(len(secret) > 0 || o.Certificates != nil); err != nil {
		return o, err
	}
	s.countGroups(&o)
	o.Listener, err = listener.Listen("--raft-addr", s.raftPort())
	return o, err
}

// advertised returns the address that a node without --advertise gives to clients: where it listens for them, or the
// host of --raft-addr if it listens on all addresses.
func advertised(listens, raftAddr string) string {
	if limiter.Reachable(listens) {
		return listens
	}
	host, _, _ := net.SplitHostPort(raftAddr)
	_, port, _ := net.SplitHostPort(listens)
	return net.JoinHostPort(host, port)
}

// countGroups sets the numbers of Raft groups and replicas to those of the node's cluster. A node without a cluster
// asks the nodes of --join for those of theirs, and takes those of the flags if none answers. If they are wrong, the
// node stops when it joins, and finds the right numbers in its directory at the next start.
func (f *clusterFlags) countGroups(o *raftstore.Options) {
	flags := raftstore.Founding{Groups: f.Groups, Replicas: f.Replicas}
	use, known := clusterHas(o)
	if !known {
		use = flags
	}
	if use != flags {
		o.Logger.Info("this node uses the numbers of Raft groups and replicas of its cluster, and not those of "+
			"--groups and --replicas", "groups", use.Groups, "replicas", use.Replicas)
	}
	o.Groups, o.Replicas = use.Groups, use.Replicas
}

// clusterHas returns the numbers of the node's cluster, if the node has one or another node of it answers.
func clusterHas(o *raftstore.Options) (raftstore.Founding, bool) {
	if o.Durability != raftstore.Memory {
		// Opening the node reports an identity that cannot be read.
		if has, known, err := raftstore.FoundingOf(o); known && err == nil {
			return has, true
		}
	}
	return raftstore.LearnFounding(o)
}

// raftPort returns the address at which the node listens for other nodes.
func (f *clusterFlags) raftPort() string {
	if f.RaftListen == "" {
		return f.RaftAddr
	}
	return f.RaftListen
}

// checkRaftExposure refuses a port for nodes that other machines can reach, unless the port is guarded.
func (f *clusterFlags) checkRaftExposure(guarded bool) error {
	if guarded || listener.IsLoopback(f.raftPort()) {
		return nil
	}
	return fmt.Errorf("--raft-listen %s can be reached from other machines: give --raft-tls-cert-file and its key "+
		"and CA, or --cluster-secret-file", f.raftPort())
}

func (s *serveCmd) fullPolicy() engine.FullPolicy {
	if s.WhenFull == "deny" {
		return engine.Deny
	}
	return engine.LeastHarm
}

func (s *serveCmd) dialVia(ctx context.Context, addr string) (net.Conn, error) {
	if via, ok := s.TestDial[addr]; ok {
		addr = via
	}
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// shiftedSource is the machine's clocks with another wall time.
type shiftedSource struct {
	persistence.Source
	byNs int64
}

// source returns the machine's clocks, with --test-wall-offset applied.
func (f *clusterFlags) source() persistence.Source {
	if f.TestWallOffset != 0 {
		return shiftedSource{persistence.SystemSource(), int64(f.TestWallOffset)}
	}
	return persistence.SystemSource()
}

func (s shiftedSource) WallNs() int64 { return s.Source.WallNs() + s.byNs }

// node is a limiter that can be closed.
type node interface {
	limiter.Limiter
	Close() error
}
