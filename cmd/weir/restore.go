package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"github.com/weir-project/weir/internal/cli/cmdline"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore"
)

// restoreCmd makes a data directory from a backup. Its flags and variables have the same meaning as those of weir
// serve.
type restoreCmd struct {
	File       string `arg:"" help:"The backup, or - for standard input."`
	DataDir    string `default:"weir-data" help:"Directory for the state: empty, or not there yet."`
	NodeID     string `name:"node-id" placeholder:"ID" help:"Make the first node of a new cluster, with this id. Others join it with empty directories."`
	RaftAddr   string `address:"" default:"127.0.0.1:6390" placeholder:"HOST:PORT" help:"The node's --raft-addr: the address by which other nodes will reach it."`
	Durability string `enum:",fsync,os" default:"" help:"The node's --durability. Without --node-id it makes a cluster of one."`

	Replicas int  `least:"0" help:"Replicas of each group of the new cluster, as of weir serve: this node has all until they are moved."`
	Groups   int  `help:"Raft groups of the new cluster, a power of two up to 1024: by default as many as the backup has."`
	EndHolds bool `help:"End the holds whose id and keys would be in different groups, instead of refusing the backup."`

	MaxDowntimeCredit time.Duration `default:"24h" help:"For a cluster: how much of the time since the backup counts as passed. A server that runs alone takes the flag at its start instead."`
}

// AfterApply refuses the flags of a node if the restore makes no node.
func (r *restoreCmd) AfterApply(ctx *kong.Context) error {
	if r.NodeID == "" && r.Durability == "" {
		for _, flag := range []string{"--raft-addr", "--groups", "--end-holds"} {
			if how := cmdline.HowGiven(ctx, cmdline.FlagOf(ctx.Selected(), flag)); how != "" {
				return idleFlags([]string{how})
			}
		}
	}
	return checkDir("--data-dir", r.DataDir)
}

func (r *restoreCmd) Run() error {
	if err := checkSystem(); err != nil {
		return err
	}
	keepPrivate()
	from := io.NopCloser(os.Stdin)
	if r.File != standardStream {
		f, err := os.Open(r.File)
		if err != nil {
			return err
		}
		from = f
	}
	defer from.Close()
	made, err := r.restore(from)
	if err != nil {
		return fmt.Errorf("%s: %w", r.File, err)
	}
	at := time.Unix(0, made.At.WallNs).UTC()
	start := ""
	if r.NodeID != "" {
		start = fmt.Sprintf(": start it with --data-dir %s --node-id %s --raft-addr %s",
			r.DataDir, r.NodeID, r.RaftAddr)
	} else if r.Durability != "" {
		start = fmt.Sprintf(": start it with --data-dir %s --durability %s", r.DataDir, r.Durability)
	}
	_, err = fmt.Printf("%s holds the state of %s%s\n", r.DataDir, at.Format(time.RFC3339), start)
	return err
}

func (r *restoreCmd) restore(from io.Reader) (persistence.Contents, error) {
	store := persistence.StoreOptions{Dir: r.DataDir, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		OnFatal: r.giveUp}
	if r.NodeID == "" && r.Durability == "" {
		return persistence.Restore(store, from)
	}
	o := raftstore.RestoreOptions{
		NodeID: r.NodeID, RaftAddr: r.RaftAddr, Durability: raftstore.Durability(r.Durability),
		Credit: r.MaxDowntimeCredit, Store: store, Groups: r.Groups, Replicas: r.Replicas, EndHolds: r.EndHolds,
	}
	if o.NodeID == "" {
		o.NodeID = soloID
	}
	return raftstore.Restore(o, from)
}

// giveUp ends the process if the disk fails. An incomplete restore is not a data directory, and the next restore starts
// again.
func (r *restoreCmd) giveUp(err error) {
	fmt.Fprintf(os.Stderr, "weir: error: %s: nothing was restored to %s: %v\n", r.File, r.DataDir, err)
	os.Exit(1)
}
