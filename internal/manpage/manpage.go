// Package manpage writes man pages from the command line that kong parses, so a page has the text of --help.
package manpage

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weir-project/weir/internal/cli/buildinfo"
)

// exitCodes is the same text on every page. A command with further codes names them in its help.
const exitCodes = "0 on success, 80 for an invalid command line, and 1 for any other failure. Codes that the " +
	"description names have the meaning that it gives."

// Write writes a page for a program and a page for each of its commands into an existing directory. Their text is the
// text of --help. The page of the program ends with foot, in roff.
func Write(app *kong.Node, dir, foot string) error {
	for _, node := range append([]*kong.Node{app}, visible(app)...) {
		var page strings.Builder
		writeManPage(&page, node)
		if node == app {
			page.WriteString(foot)
		}
		if err := os.WriteFile(filepath.Join(dir, manName(node)+".1"), []byte(page.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func visible(at *kong.Node) (nodes []*kong.Node) {
	for _, child := range at.Children {
		if !child.Hidden {
			nodes = append(nodes, child)
		}
	}
	return nodes
}

// manName returns "weir", or a name like "weir-cluster".
func manName(node *kong.Node) string { return strings.ReplaceAll(node.FullPath(), " ", "-") }

func writeManPage(w io.Writer, node *kong.Node) {
	name := manName(node)
	built := buildinfo.Read()
	date, _, _ := strings.Cut(built.Date, "T")
	fmt.Fprintf(w, ".TH %s 1 %q \"weir %s\"\n", strings.ToUpper(name), date, built.Version)
	fmt.Fprintf(w, ".SH NAME\n%s \\- %s\n", roff(name), roff(lowerFirst(firstSentence(node.Help))))
	fmt.Fprint(w, ".SH SYNOPSIS\n")
	writeManSynopsis(w, node)
	fmt.Fprintf(w, ".SH DESCRIPTION\n%s\n", roff(node.Help))
	if node.Parent == nil {
		writeManCommands(w, node)
	} else {
		writeManCommand(w, node)
	}
	fmt.Fprintf(w, ".SH EXIT STATUS\n%s\n", roff(exitCodes))
	if node.Parent != nil {
		fmt.Fprintf(w, ".SH SEE ALSO\n.BR %s (1)\n", roff(manName(node.Parent)))
	}
}

func writeManSynopsis(w io.Writer, node *kong.Node) {
	subcommands := visible(node)
	if len(subcommands) == 0 || node.Parent == nil {
		arguments := " [flags]"
		if node.Parent == nil {
			arguments = " <command> [flags]"
		}
		for _, argument := range node.Positional {
			arguments += " " + argument.Summary()
		}
		fmt.Fprintf(w, ".B %s\n%s\n", roff(node.FullPath()), roff(strings.TrimSpace(arguments)))
		return
	}
	for i, child := range subcommands {
		if i > 0 {
			fmt.Fprint(w, ".br\n")
		}
		writeManSynopsis(w, child)
	}
}

// writeManCommands lists the commands of a program, each with its page.
func writeManCommands(w io.Writer, app *kong.Node) {
	fmt.Fprint(w, ".SH COMMANDS\n")
	for _, child := range visible(app) {
		fmt.Fprintf(w, ".TP\n.BR %s (1)\n%s\n", roff(manName(child)), roff(child.Help))
	}
	fmt.Fprint(w, ".SH OPTIONS\n")
	writeManFlags(w, app)
}

// writeManCommand writes the arguments and flags of a command and of the commands below it.
func writeManCommand(w io.Writer, node *kong.Node) {
	if len(node.Positional) > 0 {
		fmt.Fprint(w, ".SH ARGUMENTS\n")
		writeManArguments(w, node)
	}
	if anyFlag(node) {
		fmt.Fprint(w, ".SH OPTIONS\n")
		writeManFlags(w, node)
	}
	if len(visible(node)) > 0 {
		fmt.Fprint(w, ".SH COMMANDS\n")
	}
	for _, child := range visible(node) {
		fmt.Fprintf(w, ".SS %s\n%s\n", roff(child.FullPath()), roff(child.Help))
		writeManArguments(w, child)
		writeManFlags(w, child)
	}
}

func writeManArguments(w io.Writer, node *kong.Node) {
	for _, argument := range node.Positional {
		fmt.Fprintf(w, ".TP\n.I %s\n%s\n", roff(argument.Summary()), roff(argument.Help))
	}
}
