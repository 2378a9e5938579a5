package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/weir-project/weir/internal/cli/listener"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
)

// These flags have a meaning only in a cluster. Without --node-id a node would ignore them, run alone, and admit a
// whole limit in addition to the limits of its intended cluster.
var (
	// needNode lists flags that need --node-id, because they are about other nodes.
	needNode = []string{"join", "expect"}
	// needCluster lists flags that need --node-id, or --durability, which makes a cluster of one.
	needCluster = []string{
		"raft-addr", "raft-listen", "advertise", "redirect", "cluster-secret", "cluster-secret-file",
		"raft-tls-cert-file", "raft-tls-key-file", "raft-tls-ca-file",
		"raft-heartbeat", "max-decision-age", "snapshot-bytes", "groups",
	}
)

// check refuses contradicting flags before anything is opened.
func (s *serveCmd) check() error {
	return errors.Join(checkSystem(), s.checkClustered(), s.checkLone(), s.checkReachable(), s.checkJoin(),
		s.checkPorts(), s.checkSockets(), s.checkEnvoy(), checkDir("--data-dir", s.DataDir))
}

// checkClustered refuses flags of a cluster if the server would run alone.
func (s *serveCmd) checkClustered() error {
	if s.NodeID != "" {
		return nil
	}
	var idle []string
	for _, name := range slices.Concat(needNode, needCluster) {
		if how := s.given[name]; how != "" && (!s.clustered() || slices.Contains(needNode, name)) {
			idle = append(idle, how)
		}
	}
	return idleFlags(idle)
}

// idleFlags returns an error that names the cluster flags given to a server that runs alone, or nil without any.
func idleFlags(given []string) error {
	if len(given) == 0 {
		return nil
	}
	return fmt.Errorf("%s: only a node of a cluster uses this, and --node-id is missing: give --node-id, or leave "+
		"these flags out to run alone", strings.Join(given, ", "))
}

// checkLone refuses a node without --join and with an empty directory. It would found a cluster of one, and so would
// the nodes of its intended cluster.
func (s *serveCmd) checkLone() error {
	if s.NodeID == "" || len(s.Join) > 0 {
		return nil
	}
	if s.DataDir != "" {
		if owner, err := raftstore.OwnerOf(s.DataDir); err != nil || owner != "" {
			return nil // the directory belongs to a node, or raftstore reports the error
		}
	}
	return fmt.Errorf("--node-id %s without --join, and %q holds no node: "+
		"name all nodes with --join; for a cluster of one name this node alone, --join %s", s.NodeID,
		s.DataDir, s.RaftAddr)
}

// checkReachable refuses addresses that this node gives to clients and nodes, if nobody could connect to them.
func (s *serveCmd) checkReachable() error {
	if !s.clustered() {
		return nil
	}
	if s.Advertise != "" && !limiter.Reachable(s.Advertise) {
		return fmt.Errorf("--advertise must be the address by which clients reach this node, like 10.0.0.1:6380, "+
			"not %q", s.Advertise)
	}
	if s.NodeID != "" && !limiter.Reachable(s.RaftAddr) {
		return fmt.Errorf("--raft-addr must be the address by which other nodes reach this one, like 10.0.0.1:6390, "+
			"not %q", s.RaftAddr)
	}
	for _, addr := range s.Join {
		if !limiter.Reachable(addr) {
			return fmt.Errorf("--join must name the --raft-addr of each node, like 10.0.0.1:6390, not %q", addr)
		}
	}
	return nil
}

// checkJoin refuses an invalid list of nodes.
func (s *serveCmd) checkJoin() error {
	own, _, _ := net.SplitHostPort(s.RaftAddr)
	for i, addr := range s.Join {
		host, _, _ := net.SplitHostPort(addr)
		switch ip := net.ParseIP(host); {
		case slices.Contains(s.Join[:i], addr):
			return fmt.Errorf("--join names %s twice: name each node once", addr)
		case addr == s.Listen || addr == s.TLSListen || addr == s.HTTP:
			return fmt.Errorf("--join names %s, where this node listens for clients or probes: "+
				"name the --raft-addr of each node", addr)
		case ip != nil && !ip.IsLoopback() && listener.IsLoopback(net.JoinHostPort(own, "0")):
			return fmt.Errorf("--join names %s, which cannot reach --raft-addr %s of this node: "+
				"give --raft-addr the address by which other machines reach it", addr, s.RaftAddr)
		}
	}
	return nil
}

// checkPorts refuses two ports with the same address.
func (s *serveCmd) checkPorts() error {
	type port struct{ flag, addr string }
	ports := []port{{"--listen", s.Listen}, {"--tls-listen", s.TLSListen}, {"--http", s.HTTP}, {"--rls", s.RLS}}
	switch {
	case s.clustered() && s.RaftListen != "":
		ports = append(ports, port{"--raft-listen", s.RaftListen})
	case s.clustered():
		ports = append(ports, port{"--raft-addr", s.RaftAddr})
	}
	for i, one := range ports {
		for _, other := range ports[:i] {
			if sameAddress(one.addr, other.addr) {
				return fmt.Errorf("%s %s and %s %s are the same port: give each its own",
					other.flag, other.addr, one.flag, one.addr)
			}
		}
	}
	return nil
}

// sameAddress reports whether the addresses of two listeners collide.
func sameAddress(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	everywhere := func(host string) bool {
		ip := net.ParseIP(host)
		return host == "" || ip != nil && ip.IsUnspecified()
	}
	return hostA == hostB || everywhere(hostA) || everywhere(hostB)
}

// checkDir refuses an existing path that is not a directory.
func checkDir(flag, dir string) error {
	if at, err := os.Stat(dir); err == nil && !at.IsDir() {
		return fmt.Errorf("%s %s is not a directory: give an empty directory, one that weir made, or one that does "+
			"not exist yet", flag, dir)
	}
	return nil
}
