package main

import (
	"errors"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weir-project/weir/internal/cli/buildinfo"
	"github.com/weir-project/weir/internal/cli/cluster"
	"github.com/weir-project/weir/internal/cli/cmdline"
	"github.com/weir-project/weir/internal/cli/demo"
	"github.com/weir-project/weir/internal/cli/envoy"
	"github.com/weir-project/weir/internal/cli/events"
	"github.com/weir-project/weir/internal/cli/healthcheck"
	"github.com/weir-project/weir/internal/cli/keys"
	"github.com/weir-project/weir/internal/cli/migrate"
	"github.com/weir-project/weir/internal/cli/policy"
	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/internal/cli/terminal"
	"github.com/weir-project/weir/internal/cli/top"
	"github.com/weir-project/weir/server/commands"
	"github.com/weir-project/weir/server/scripts"
)

// cli is the command line.
type cli struct {
	Serve       serveCmd            `cmd:"" help:"Run the server."`
	Help        helpCmd             `cmd:"" help:"Explain the commands a client may send."`
	Dialects    dialectsCmd         `cmd:"" help:"List the limiter libraries whose scripts are recognised."`
	Cluster     cluster.Command     `cmd:"" help:"Show a running cluster, or change it."`
	Policy      policy.Command      `cmd:"" help:"Test policy files, compare them with a running server, apply them, or export the policies in force."`
	Migrate     migrate.Command     `cmd:"" help:"Prepare a move from Redis."`
	Keys        keys.Command        `cmd:"" help:"List keys of a running server, look them up, explain, reset and block them."`
	Call        callCmd             `cmd:"" help:"Send one command to a running server and print the reply, without another client."`
	Events      events.Command      `cmd:"" help:"Print the events of a running server, or deliver them to a URL or a program: thresholds, settled and expired holds, lockouts."`
	Envoy       envoy.Command       `cmd:"" help:"Check configurations of Envoy's rate limit service, which weir serve --envoy-config reads."`
	Top         top.Command         `cmd:"" help:"Watch a running server: decisions, time to decide, heaviest keys, memory, nodes."`
	Doctor      doctorCmd           `cmd:"" help:"Check what the flags of weir serve need, and the server that runs with them, and say what to do. Exit code 1 if a check fails."`
	Backup      backupCmd           `cmd:"" help:"Copy the state of a running server into a file."`
	Restore     restoreCmd          `cmd:"" help:"Restore a backup into a data directory, for a server that runs alone or the first node of a new cluster."`
	Healthcheck healthcheck.Command `cmd:"" help:"Ask a server whether it is ready: exit code 0 if it is."`
	Demo        demo.Command        `cmd:"" help:"Run three nodes of one cluster on this machine, to try a cluster. Stops them all when it ends."`
	DemoNode    demoNodeCmd         `cmd:"" name:"__demo-node" hidden:""`
	Completion  completionCmd       `cmd:"" help:"Print the script by which a shell completes weir's commands and flags."`
	Complete    completeCmd         `cmd:"" name:"__complete" hidden:""`
	Version     versionCmd          `cmd:"" help:"Print the version, its commit and date, and the Go version that built it."`

	VersionFlag kong.VersionFlag `env:"-" name:"version" help:"Print the version and exit."`
}

func main() {
	parser := newParser(new(cli))
	args := os.Args[1:]
	if len(args) == 0 {
		args = []string{"--help"}
	}
	ctx, err := parser.Parse(args)
	parser.FatalIfErrorf(cmdline.Explain(err))
	err = ctx.Run()
	if told := (*cmdline.Outcome)(nil); errors.As(err, &told) {
		os.Exit(told.Code)
	}
	parser.FatalIfErrorf(remote.Advise(err))
}

// serveGroups are the groups of flags that weir serve --help and docs/configuration.md show.
// A flag of weir serve names its group in the tag group.
var serveGroups = []kong.Group{
	{Key: "ports", Title: "Ports:"},
	{Key: "file", Title: "Configuration file:"},
	{Key: "state", Title: "State, time and policies:"},
	{Key: "access", Title: "Passwords and users:"},
	{Key: "bounds", Title: "Bounds on clients and memory:"},
	{Key: "tls", Title: "TLS for clients:"},
	{Key: "cluster", Title: "Nodes of a cluster:"},
	{Key: "logs", Title: "Logs, traces and profiles:"},
}

func newParser(c *cli) *kong.Kong {
	return kong.Must(c, append(cmdline.Options(),
		kong.Name("weir"),
		kong.Description("A rate limiter that speaks the Redis protocol."),
		kong.Vars{"version": buildinfo.Read().String()},
		kong.ExplicitGroups(serveGroups),
	)...)
}

type dialectsCmd struct {
	JSON bool `env:"-" name:"json" help:"Print JSON."`
}

func (d *dialectsCmd) Run() error {
	if d.JSON {
		return terminal.WriteJSON(os.Stdout, scripts.Dialects())
	}
	return scripts.WriteDialects(os.Stdout)
}

type helpCmd struct {
	Command []string `arg:"" optional:"" help:"The command to explain, like rl.tokenbucket; none lists them all."`
}

func (h *helpCmd) Run() error { return commands.WriteHelp(os.Stdout, strings.Join(h.Command, " ")) }
