// Command weir-bench measures weir and the rate limiters that people use today. It reads flags and writes reports;
// package bench measures.
package main

import (
	"os"

	"github.com/alecthomas/kong"

	"github.com/weir-project/weir/internal/cli/buildinfo"
	"github.com/weir-project/weir/internal/cli/cmdline"
	"github.com/weir-project/weir/internal/manpage"
)

// cli is the command line.
type cli struct {
	Run   measureCmd `cmd:"" default:"withargs" help:"Measure weir beside Redis. This is what weir-bench does unless told otherwise."`
	Guard guardCmd   `cmd:"" help:"Compare two programs of weir alternately, with a verdict beyond the noise."`
	Man   manCmd     `cmd:"" hidden:"" help:"Write man pages of weir-bench into a directory."`

	VersionFlag kong.VersionFlag `env:"-" name:"version" help:"Print the version and exit."`
}

// manCmd writes man pages. Only the build of a release needs it.
type manCmd struct {
	Dir string `arg:"" type:"existingdir"`
}

func (m *manCmd) Run(ctx *kong.Context) error {
	return manpage.Write(ctx.Model.Node, m.Dir, ".SH SEE ALSO\n.BR weir (1)\n")
}

func main() {
	parser := newParser(new(cli))
	ctx, err := parser.Parse(os.Args[1:])
	parser.FatalIfErrorf(cmdline.Explain(err))
	parser.FatalIfErrorf(ctx.Run())
}

func newParser(c *cli) *kong.Kong {
	return kong.Must(c, append(cmdline.Options(),
		kong.Name("weir-bench"),
		kong.Description("Measures weir beside Redis on this machine; weir-bench run --help explains."),
		kong.Vars{"version": buildinfo.Read().String()},
	)...)
}

// AfterApply refuses values that kong accepts.
func (*cli) AfterApply(ctx *kong.Context) error { return cmdline.CheckValues(ctx) }
