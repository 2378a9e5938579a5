package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/internal/cli/cmdline"
)

const (
	// clusterDialTimeout is plenty for a node that is up.
	clusterDialTimeout = 5 * time.Second
	// clusterReplyTimeout outlasts a change of the members, a snapshot of a large
	// state, and an election on the way.
	clusterReplyTimeout = time.Minute
	// maxClusterHops bounds how often a command is sent on to another node: the
	// leader changes rarely twice meanwhile.
	maxClusterHops = 3
)

// clusterCmd looks at a running cluster and changes it, through any of its nodes.
type clusterCmd struct {
	Addr         string `address:"" default:"127.0.0.1:6380" help:"A node of the cluster, as clients reach it; the command finds the leader from there."`
	PasswordFile string `placeholder:"FILE" help:"File that holds the password of the nodes."`
	dialFlags

	Status   clusterStatusCmd   `cmd:"" help:"Show the nodes, as one of them sees them. Fails when no leader is known."`
	Add      clusterAddCmd      `cmd:"" help:"Add a node to the cluster."`
	Remove   clusterRemoveCmd   `cmd:"" help:"Remove a node from the cluster. Stop it first."`
	Transfer clusterTransferCmd `cmd:"" help:"Hand leadership to another node."`
	Snapshot clusterSnapshotCmd `cmd:"" help:"Have the node at --addr write a snapshot."`
}

type clusterAddCmd struct {
	ID       string `arg:"" help:"The name of the node, its --node-id."`
	RaftAddr string `arg:"" help:"Its host:port for the other nodes, its --raft-addr."`
}

type clusterRemoveCmd struct {
	ID string `arg:"" help:"The name of the node."`
}

type clusterTransferCmd struct {
	ID        string `arg:"" optional:"" help:"The node to become leader; any, unless given."`
	IfLeading bool   `env:"-" help:"Only if the node at --addr leads: for a node that is about to stop."`
}

type clusterSnapshotCmd struct{}

type clusterStatusCmd struct {
	JSON bool `env:"-" name:"json" help:"Print JSON."`
}

func (a *clusterAddCmd) Run(c *clusterCmd) error {
	return c.change(os.Stdout, a.ID+" is taken in", "ADD", a.ID, a.RaftAddr)
}

func (r *clusterRemoveCmd) Run(c *clusterCmd) error {
	return c.change(os.Stdout, r.ID+" is out", "REMOVE", r.ID)
}

func (t *clusterTransferCmd) Run(c *clusterCmd) error {
	if t.IfLeading {
		status, err := c.status()
		if err != nil {
			return err
		}
		if status.Leader != status.Node {
			_, err = fmt.Printf("%s does not lead\n", status.Node)
			return err
		}
	}
	if t.ID == "" {
		return c.change(os.Stdout, "leadership is handed over", "TRANSFER")
	}
	return c.change(os.Stdout, t.ID+" leads", "TRANSFER", t.ID)
}

func (s *clusterSnapshotCmd) Run(c *clusterCmd) error {
	return c.change(os.Stdout, "the snapshot is written", "SNAPSHOT")
}

var errNoLeader = errors.New("the cluster has no leader: nothing is decided until a majority of its voters are up and reach each other")

func (s *clusterStatusCmd) Run(c *clusterCmd) error { return s.show(os.Stdout, c) }

func (s *clusterStatusCmd) show(w io.Writer, c *clusterCmd) error {
	status, err := c.status()
	if err != nil {
		return err
	}
	if s.JSON {
		err = writeJSON(w, status)
	} else {
		err = status.writeTable(w)
	}
	if err == nil && status.Leader == "" {
		return errNoLeader
	}
	return err
}

// status asks the node at Addr.
func (c *clusterCmd) status() (clusterStatus, error) {
	reply, err := c.ask("STATUS")
	if err != nil {
		return clusterStatus{}, err
	}
	status, err := readStatus(reply)
	if err != nil {
		err = fmt.Errorf("%s answers what is no status: %w", c.Addr, err)
	}
	return status, err
}

// change carries out a subcommand and says that it is done.
func (c *clusterCmd) change(w io.Writer, done string, args ...string) error {
	if _, err := c.ask(args...); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, done)
	return err
}

// ask sends WEIR.CLUSTER with args to the node, and on to where it says that the
// leader is.
func (c *clusterCmd) ask(args ...string) (reply any, err error) {
	password, err := cmdline.SecretFrom("password", "", c.PasswordFile)
	if err != nil {
		return nil, err
	}
	addr := c.Addr
	for range maxClusterHops {
		reply, err = c.askNode(addr, password, args)
		to, moved := movedTo(err)
		if !moved {
			return reply, err
		}
		addr = to
	}
	return nil, fmt.Errorf("the leader keeps changing, try again: %w", err)
}

func (c *clusterCmd) askNode(addr, password string, args []string) (any, error) {
	conn, err := c.dial(addr, password)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	list := make([]any, len(args))
	for i, a := range args {
		list[i] = a
	}
	reply, err := conn.Do("WEIR.CLUSTER", list...)
	if err != nil {
		return nil, fmt.Errorf("%s answers: %w", addr, err)
	}
	return reply, nil
}

// movedTo reads the address from MOVED slot address.
func movedTo(err error) (addr string, ok bool) {
	var refused redis.Error
	if !errors.As(err, &refused) {
		return "", false
	}
	words := strings.Fields(string(refused))
	if len(words) != 3 || words[0] != "MOVED" {
		return "", false
	}
	at := strings.LastIndexByte(words[2], ':')
	if at < 0 {
		return "", false
	}
	if host := words[2][:at]; strings.Contains(host, ":") { // IPv6, without brackets
		return "[" + host + "]" + words[2][at:], true
	}
	return words[2], true
}
