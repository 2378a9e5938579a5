package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weir-project/weir/server"
)

// cli is the command line.
type cli struct {
	Serve       serveCmd       `cmd:"" help:"Run the server."`
	Help        helpCmd        `cmd:"" help:"Explain the commands a client may send."`
	Dialects    dialectsCmd    `cmd:"" help:"List the limiter libraries whose scripts are recognised."`
	Cluster     clusterCmd     `cmd:"" help:"Look at a running cluster, or change it."`
	Policy      policyCmd      `cmd:"" help:"Bring the policies of a running server to what a file says, compare them, or write them down."`
	Healthcheck healthcheckCmd `cmd:"" help:"Ask a server whether it is ready: exit code 0 if it is."`
	Bench       benchCmd       `cmd:"" help:"Measure weir beside Redis on this machine; weir bench run --help explains."`
	Version     versionCmd     `cmd:"" help:"Print the version."`
}

func main() {
	parser := newParser(new(cli))
	args := os.Args[1:]
	if len(args) == 0 {
		args = []string{"--help"}
	}
	ctx, err := parser.Parse(args)
	parser.FatalIfErrorf(err)
	parser.FatalIfErrorf(ctx.Run())
}

func newParser(c *cli) *kong.Kong {
	return kong.Must(c,
		kong.Name("weir"),
		kong.Description("A rate limiter that speaks the Redis protocol."),
		kong.DefaultEnvars(envPrefix),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
}

type versionCmd struct{}

func (versionCmd) Run() error {
	_, err := fmt.Println("weir", version())
	return err
}

type dialectsCmd struct {
	Markdown bool `env:"-" help:"Print the list as Markdown."`
}

func (d *dialectsCmd) Run() error { return server.WriteDialects(os.Stdout, d.Markdown) }

type helpCmd struct {
	Command  []string `arg:"" optional:"" help:"The command to explain, like rl.tokenbucket; none lists them all."`
	Markdown bool     `env:"-" help:"Print the whole reference as Markdown."`
}

func (h *helpCmd) Run() error { return h.write(os.Stdout) }

func (h *helpCmd) write(w io.Writer) error {
	if h.Markdown {
		return server.WriteReference(w)
	}
	return server.WriteHelp(w, strings.Join(h.Command, " "))
}
