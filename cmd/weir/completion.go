package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weir-project/weir/internal/cli/cmdline"
)

// The scripts ask weir for completions, so they never need to change.
var (
	//go:embed completion/weir.bash
	bashCompletion string
	//go:embed completion/weir.zsh
	zshCompletion string
	//go:embed completion/weir.fish
	fishCompletion string
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash: source <(weir completion bash). zsh: the same, or into a file _weir on fpath. fish: weir completion fish | source."`
}

func (c *completionCmd) Run() error { return c.write(os.Stdout) }

func (c *completionCmd) write(w io.Writer) error {
	_, err := io.WriteString(
		w, map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell])
	return err
}

// completeCmd is the command that the scripts call.
type completeCmd struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"The words after weir; the last word is incomplete."`
}

func (c *completeCmd) Run(ctx *kong.Context) error {
	for _, word := range complete(ctx.Model.Node, c.Words) {
		fmt.Println(word)
	}
	return nil
}

// complete returns the completions of the last word. It returns nothing if any value is possible, such as a file.
func complete(at *kong.Node, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	before, typed := words[:len(words)-1], words[len(words)-1]
	var open *kong.Flag // the flag whose value comes next
	for _, word := range before {
		switch name, _, whole := strings.Cut(word, "="); {
		case word == "=": // the shell splits words there
		case open != nil:
			open = nil
		case strings.HasPrefix(word, "-"):
			if flag := cmdline.FlagOf(at, name); flag != nil && !whole && !flag.IsBool() {
				open = flag
			}
		default:
			at = cmdline.Below(at, word)
		}
	}
	if typed == "=" {
		typed = ""
	}
	name, value, whole := strings.Cut(typed, "=")
	switch {
	case open != nil:
		return beginning(cmdline.EnumOf(open.Value), typed)
	case whole && strings.HasPrefix(name, "-"):
		return valuesOf(cmdline.FlagOf(at, name), name+"=", value)
	case strings.HasPrefix(typed, "-"):
		return beginning(flagNames(at), typed)
	case len(at.Positional) > 0:
		return beginning(cmdline.EnumOf(at.Positional[0]), typed)
	}
	return beginning(commandNames(at), typed)
}

func flagNames(at *kong.Node) (names []string) {
	for _, flag := range cmdline.FlagsOf(at) {
		names = append(names, "--"+flag.Name)
	}
	return names
}

func commandNames(at *kong.Node) (names []string) {
	for _, child := range at.Children {
		if !child.Hidden {
			names = append(names, child.Name)
		}
	}
	return names
}

// valuesOf completes --flag=value.
func valuesOf(flag *kong.Flag, prefix, typed string) (words []string) {
	if flag == nil {
		return nil
	}
	for _, word := range beginning(cmdline.EnumOf(flag.Value), typed) {
		words = append(words, prefix+word)
	}
	return words
}

func beginning(words []string, with string) (found []string) {
	for _, word := range words {
		if strings.HasPrefix(word, with) {
			found = append(found, word)
		}
	}
	return found
}
