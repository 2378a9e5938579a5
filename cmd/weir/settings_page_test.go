package main

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/cli/cmdline"
)

// settingsPage returns docs/configuration.md without its table of contents: an introduction, the flags of weir serve by
// group, then the flags of each other command.
func settingsPage(t *testing.T, app *kong.Application) string {
	intro, err := os.ReadFile("testdata/settings.txt")
	require.NoError(t, err)
	var b strings.Builder
	b.Write(intro)
	var serve []*kong.Flag
	for _, command := range app.Children {
		if command.Name == "serve" {
			serve = command.Flags
		}
	}
	for _, group := range serveGroups {
		fmt.Fprintf(&b, "\n## %s\n", strings.TrimSuffix(group.Title, ":"))
		if group.Key == "cluster" {
			fmt.Fprintf(&b, "\nWithout `--node-id` or `--durability`, weir refuses `--%s`.\n",
				strings.Join(slices.Concat(needNode, needCluster), "`, `--"))
		}
		for _, flag := range serve {
			if !flag.Hidden && flag.Group != nil && flag.Group.Key == group.Key {
				writeSetting(&b, flag)
			}
		}
	}
	b.WriteString("\n## Other commands\n\nFlags for one run have no variable. " +
		"The configuration file is for `weir serve` and `weir doctor` alone. Several commands take these flags, " +
		"and name them only:\n\n")
	shared := sharedFlags(app)
	for _, flag := range shared {
		writeFlag(&b, flag)
	}
	for _, command := range app.Children {
		if command.Name != "serve" {
			writeCommand(&b, command, serve, shared)
		}
	}
	return b.String()
}

// writeSetting writes the section of one flag of weir serve.
func writeSetting(b *strings.Builder, flag *kong.Flag) {
	fmt.Fprintf(b, "\n### `--%s`\n\n", flag.Name)
	fmt.Fprintf(b, "`%s`. Value: %s. Default: %s.", strings.Join(flag.Envs, "`, `"), valueForm(flag), defaultOf(flag))
	if slices.Contains(needNode, flag.Name) {
		b.WriteString(" Only with `--node-id`.")
	}
	fmt.Fprintf(b, "\n\n%s\n", asMarkdown(flag.Help))
}

// valueForm says which values a flag takes.
func valueForm(flag *kong.Flag) string {
	form := "`" + cmp.Or(flag.PlaceHolder, "text") + "`"
	switch flag.Target.Interface().(type) {
	case bool:
		return "a switch"
	case time.Duration:
		form = "a duration"
	case cmdline.ByteSize:
		form = "a size"
	case memoryBound:
		return "a size, `auto` or `0`"
	default:
		switch {
		case flag.Enum != "":
			choices := slices.DeleteFunc(strings.Split(flag.Enum, ","),
				func(choice string) bool { return choice == "" })
			return "`" + strings.Join(choices, "`, `") + "`"
		case flag.Tag.Has(cmdline.AddressTag):
			form = "an address"
			if flag.IsSlice() {
				form = "a list of addresses"
			}
		case flag.Target.CanInt():
			return "a number, " + cmp.Or(flag.Tag.Get(cmdline.LeastTag), "0") + " or more"
		}
	}
	if least := flag.Tag.Get(cmdline.LeastTag); least != "" {
		form += ", `" + least + "` or more"
	}
	if flag.Tag.Has(cmdline.MayEmptyTag) {
		form += ", or empty"
	}
	return form
}

func defaultOf(flag *kong.Flag) string {
	switch {
	case flag.Default != "":
		return "`" + flag.Default + "`"
	case flag.IsBool():
		return "`false`"
	}
	return "none"
}

// fewestSharers is how many commands must take a flag, with the same meaning, to explain it once for all.
const fewestSharers = 3

// sharedFlags returns the flags that several commands other than weir serve have, in the order of their first use.
func sharedFlags(app *kong.Application) (shared []*kong.Flag) {
	sharers := map[string]int{}
	_ = kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if command, ok := node.(*kong.Node); ok && command.Name != "serve" && command.Name != doctorName {
			for _, flag := range command.Flags {
				sharers[meaningOf(flag)]++
				if !flag.Hidden && sharers[meaningOf(flag)] == fewestSharers {
					shared = append(shared, flag)
				}
			}
		}
		return next(nil)
	})
	return shared
}

// meaningOf is equal for flags of one name and meaning.
func meaningOf(flag *kong.Flag) string {
	return strings.Join(append([]string{flag.Name, flag.Help, flag.Default}, flag.Envs...), "\n")
}

// writeCommand writes the section of a command and of the commands below it. For weir doctor it omits the flags of
// weir serve, which doctor takes too.
func writeCommand(b *strings.Builder, command *kong.Node, serve, shared []*kong.Flag) {
	if command.Hidden {
		return
	}
	var known []string
	fmt.Fprintf(b, "\n### `%s`\n\n%s\n", command.FullPath(), asMarkdown(command.Help))
	if command.Name == doctorName {
		known = cmdline.Names(serve)
		b.WriteString("It takes the flags, variables and file of `weir serve`, and these.\n")
	}
	writeCommandFlags(b, command, known, shared)
	for _, child := range command.Children {
		if child.Hidden {
			continue
		}
		fmt.Fprintf(b, "\n**`weir %s`**: %s\n", child.Summary(), asMarkdown(child.Help))
		writeCommandFlags(b, child, known, shared)
	}
}

func writeCommandFlags(b *strings.Builder, command *kong.Node, known []string, shared []*kong.Flag) {
	var items strings.Builder
	for _, argument := range command.Positional {
		writeItem(&items, argument.Summary(), nil, "", orNothing(argument.Default), argument.Help)
	}
	var also []string
	for _, flag := range command.Flags {
		switch {
		case flag.Hidden || slices.Contains(known, flag.Name):
		case slices.ContainsFunc(shared, func(one *kong.Flag) bool { return meaningOf(one) == meaningOf(flag) }):
			also = append(also, "`--"+flag.Name+"`")
		default:
			writeFlag(&items, flag)
		}
	}
	if len(also) > 0 {
		fmt.Fprintf(b, "Shared flags: %s.\n", strings.Join(also, ", "))
	}
	if items.Len() > 0 {
		b.WriteString("\n" + items.String())
	}
}

// writeFlag writes a flag as an item of a list.
func writeFlag(b *strings.Builder, flag *kong.Flag) {
	byDefault := defaultOf(flag)
	if byDefault == "none" || flag.IsBool() {
		byDefault = ""
	}
	writeItem(b, "--"+flag.Name, flag.Envs, valueForm(flag), byDefault, flag.Help)
}

// writeItem writes a flag or an argument as an item of a list: its variables, the form of its value and its default in
// brackets, and its help text.
func writeItem(b *strings.Builder, name string, variables []string, form, byDefault, help string) {
	facts := []string{}
	for _, variable := range variables {
		facts = append(facts, "`"+variable+"`")
	}
	if form != "" {
		facts = append(facts, form)
	}
	if byDefault != "" {
		facts = append(facts, "default "+byDefault)
	}
	if len(facts) > 0 {
		name += "` (" + strings.Join(facts, "; ") + ")"
	} else {
		name += "`"
	}
	fmt.Fprintf(b, "- `%s: %s\n", name, asMarkdown(help))
}

var (
	helpFlag = regexp.MustCompile(`--[a-z][a-z-]*`)
	helpPage = regexp.MustCompile(`docs/([a-z]+\.md)`)
	helpMark = strings.NewReplacer("*", `\*`, "<", "&lt;", "_", `\_`)
)

// asMarkdown returns a help text with flags as code, pages as links, and nothing that Markdown
// would take for markup of its own.
func asMarkdown(help string) string {
	help = helpFlag.ReplaceAllString(helpMark.Replace(help), "`$0`")
	return helpPage.ReplaceAllString(help, "[$1]($1)")
}

// orNothing returns text as code, or nothing when it is empty.
func orNothing(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
