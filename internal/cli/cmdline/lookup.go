package cmdline

import "github.com/alecthomas/kong"

// Below returns the subcommand of at with a name, or at itself if it has no such subcommand.
func Below(at *kong.Node, word string) *kong.Node {
	for _, child := range at.Children {
		if child.Name == word {
			return child
		}
	}
	return at
}

// FlagsOf returns the flags that a command accepts: its own, and those of the commands above it.
func FlagsOf(at *kong.Node) (all []*kong.Flag) {
	for _, group := range at.AllFlags(true) {
		all = append(all, group...)
	}
	return all
}

// FlagOf returns the flag of at that a user writes as dashed, such as --addr or -f. It returns nil if at has no such
// flag.
func FlagOf(at *kong.Node, dashed string) *kong.Flag {
	for _, flag := range FlagsOf(at) {
		if dashed == "--"+flag.Name || flag.Short != 0 && dashed == "-"+string(flag.Short) {
			return flag
		}
	}
	return nil
}

// Names returns the names of the flags that appear in help.
func Names(flags []*kong.Flag) (all []string) {
	for _, flag := range flags {
		if !flag.Hidden {
			all = append(all, flag.Name)
		}
	}
	return all
}

// EnumOf returns the words that a value may be, or nothing if it may be any word.
func EnumOf(v *kong.Value) (words []string) {
	for _, word := range v.EnumSlice() {
		if word != "" {
			words = append(words, word)
		}
	}
	return words
}
