// Package cluster shows the state of a running cluster and changes its members (weir cluster).
package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/weir-project/weir/internal/cli/cmdline"
	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/internal/cli/terminal"
)

// Command shows and changes a running cluster, through any of its nodes.
type Command struct {
	Addr         string `address:"" default:"127.0.0.1:6380" help:"A node of the cluster, as clients reach it; the command finds the leader from there."`
	PasswordFile string `placeholder:"FILE" help:"File that contains the password of the nodes."`
	remote.Flags

	Status   statusCmd   `cmd:"" help:"Show the nodes, as one of them sees them. Fails when no leader is known."`
	Add      addCmd      `cmd:"" help:"Add a node to the cluster."`
	Remove   removeCmd   `cmd:"" help:"Remove a node from the cluster. Stop it first."`
	Transfer transferCmd `cmd:"" help:"Transfer leadership to another node."`
	Move     moveCmd     `cmd:"" help:"Move a replica of a Raft group to another node, while it serves. A command that was stopped is run again."`
	Plan     planCmd     `cmd:"" help:"Show which replicas to move so that groups are complete and nodes even. Changes nothing."`
	Apply    applyCmd    `cmd:"" help:"Carry out the moves of a plan, one after the other. A command that was stopped is run again."`
	Drain    drainCmd    `cmd:"" help:"Move all replicas of a node to others, for maintenance or before it is removed."`
	Snapshot snapshotCmd `cmd:"" help:"Have the node at --addr write a snapshot."`
}

type addCmd struct {
	ID       string `arg:"" help:"The id of the node, its --node-id."`
	RaftAddr string `arg:"" help:"Its host:port for the other nodes, its --raft-addr."`
}

type removeCmd struct {
	ID string `arg:"" help:"The id of the node."`
}

type transferCmd struct {
	ID        string `arg:"" optional:"" help:"The node to become leader; any, unless given."`
	IfLeading bool   `env:"-" help:"Only if the node at --addr leads: for a node that is about to stop."`
	Group     *int   `env:"-" help:"Only the Raft group with this number, counted from 0."`
}

type snapshotCmd struct{}

type statusCmd struct {
	JSON bool `env:"-" name:"json" help:"Print JSON."`
}

func (a *addCmd) Run(c *Command) error {
	return c.change(os.Stdout, a.ID+" was added", "ADD", a.ID, a.RaftAddr)
}

func (r *removeCmd) Run(c *Command) error {
	return c.change(os.Stdout, r.ID+" was removed", "REMOVE", r.ID)
}

func (t *transferCmd) Run(c *Command) error {
	if t.IfLeading {
		status, err := c.AskStatus()
		if err != nil {
			return err
		}
		if status.LedBy(status.Node) == 0 {
			_, err = fmt.Printf("%s is not the leader\n", status.Node)
			return err
		}
	}
	switch {
	case t.ID == "" && t.Group != nil:
		return errors.New("--group needs the id of the node that shall lead the group")
	case t.Group != nil:
		return c.change(os.Stdout, fmt.Sprintf("%s is now the leader of group %d", t.ID, *t.Group), "TRANSFER", t.ID,
			"GROUP", strconv.Itoa(*t.Group))
	case t.ID == "":
		return c.change(os.Stdout, "leadership was transferred", "TRANSFER")
	}
	return c.change(os.Stdout, "leadership was transferred to "+t.ID, "TRANSFER", t.ID)
}

func (s *snapshotCmd) Run(c *Command) error {
	return c.change(os.Stdout, "the snapshot was written", "SNAPSHOT")
}

func noLeader(s *remote.Status) error {
	return fmt.Errorf("%d of %d groups have no leader: nothing is decided for their keys until a majority of the "+
		"voters are up and reach each other", s.Leaderless(), len(s.Groups))
}

func (s *statusCmd) Run(c *Command) error { return s.show(os.Stdout, c) }

func (s *statusCmd) show(w io.Writer, c *Command) error {
	status, err := c.AskStatus()
	if err != nil {
		return err
	}
	if s.JSON {
		err = terminal.WriteJSON(w, status)
	} else {
		err = status.WriteTable(w)
	}
	if err == nil && status.Leaderless() > 0 {
		return noLeader(&status)
	}
	return err
}

// AskStatus asks the node at Addr for the state of the cluster.
func (c *Command) AskStatus() (remote.Status, error) {
	reply, err := c.ask("STATUS")
	if err != nil {
		return remote.Status{}, err
	}
	status, err := remote.ReadStatus(reply)
	if err != nil {
		err = fmt.Errorf("%s sent an unexpected status: %w", c.Addr, err)
	}
	return status, err
}

// change runs a subcommand and reports its completion.
func (c *Command) change(w io.Writer, done string, args ...string) error {
	if _, err := c.ask(args...); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, done)
	return err
}

// ask sends WEIR.CLUSTER with args to the node. It follows redirects to the leader.
func (c *Command) ask(args ...string) (reply any, err error) {
	password, err := cmdline.SecretFrom("password", "", c.PasswordFile)
	if err != nil {
		return nil, err
	}
	addr := c.Addr
	for range remote.MaxHops {
		reply, err = c.askNode(addr, password, "WEIR.CLUSTER", args...)
		to, moved := remote.MovedTo(err)
		if !moved {
			return reply, err
		}
		addr = to
	}
	return nil, fmt.Errorf("the leader changed several times, try again: %w", err)
}

func (c *Command) askNode(addr, password, command string, args ...string) (any, error) {
	conn, err := c.Dial(addr, password)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	list := make([]any, len(args))
	for i, a := range args {
		list[i] = a
	}
	reply, err := conn.Do(command, list...)
	if err != nil {
		return nil, fmt.Errorf("%s answers: %w", addr, err)
	}
	return reply, nil
}
