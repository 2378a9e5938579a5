package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/weir-project/weir/internal/cli/cmdline"
)

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

// settingsIntro is what docs/configuration.md says before the first flag.
//
//go:embed settings.txt
var settingsIntro string

// writeSettings writes docs/configuration.md: the flags of weir serve by group, then the flags of
// each other command.
func writeSettings(w io.Writer, app *kong.Application) error {
	var b strings.Builder
	b.WriteString(settingsIntro)
	var serve []*kong.Flag
	for _, command := range app.Children {
		if command.Name == "serve" {
			serve = command.Flags
		}
	}
	for _, group := range serveGroups {
		fmt.Fprintf(&b, "\n## %s\n", strings.TrimSuffix(group.Title, ":"))
		for _, flag := range serve {
			if !flag.Hidden && flag.Group != nil && flag.Group.Key == group.Key {
				writeSetting(&b, flag)
			}
		}
	}
	b.WriteString("\n## Other commands\n\nFlags for one run have no variable. " +
		"The configuration file is for `weir serve` and `weir doctor` alone.\n")
	for _, command := range app.Children {
		if command.Name != "serve" {
			writeCommand(&b, command, serve)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeSetting writes the section of one flag of weir serve.
func writeSetting(b *strings.Builder, flag *kong.Flag) {
	fmt.Fprintf(b, "\n### `--%s`\n\n", flag.Name)
	fmt.Fprintf(b, "Variable `%s`", strings.Join(flag.Envs, "`, `"))
	if flag.Name != configFlag {
		fmt.Fprintf(b, ", key `%s`", flag.Name)
	}
	fmt.Fprintf(b, ". Value: %s. Default: %s.", valueForm(flag), defaultOf(flag))
	switch {
	case slices.Contains(needNode, flag.Name):
		b.WriteString(" Only in a cluster, with `--node-id`.")
	case slices.Contains(needCluster, flag.Name):
		b.WriteString(" Only in a cluster, with `--node-id` or `--durability`.")
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

// writeCommand writes the section of a command and of the commands below it. For weir doctor it omits the flags of
// weir serve, which doctor takes too.
func writeCommand(b *strings.Builder, command *kong.Node, serve []*kong.Flag) {
	if command.Hidden {
		return
	}
	var known []string
	fmt.Fprintf(b, "\n### `%s`\n\n%s\n", command.FullPath(), asMarkdown(command.Help))
	if command.Name == doctorName {
		known = cmdline.Names(serve)
		b.WriteString("It takes the flags, variables and file of `weir serve`, and:\n")
	}
	writeCommandFlags(b, command, known)
	for _, child := range command.Children {
		if child.Hidden {
			continue
		}
		fmt.Fprintf(b, "\n**`weir %s`**: %s\n", child.Summary(), asMarkdown(child.Help))
		writeCommandFlags(b, child, known)
	}
}

func writeCommandFlags(b *strings.Builder, command *kong.Node, known []string) {
	heading := "\n| flag or argument | variable | value | default | meaning |\n|---|---|---|---|---|\n"
	row := func(name, variable, form, byDefault, help string) {
		help = strings.ReplaceAll(asMarkdown(help), "|", `\|`)
		fmt.Fprintf(b, "%s| %s | %s | %s | %s | %s |\n", heading, name, variable, form, byDefault, help)
		heading = ""
	}
	for _, argument := range command.Positional {
		row("`"+argument.Summary()+"`", "", "", orNothing(argument.Default), argument.Help)
	}
	for _, flag := range command.Flags {
		if !flag.Hidden && !slices.Contains(known, flag.Name) {
			row("`--"+flag.Name+"`", orNothing(strings.Join(flag.Envs, " ")), valueForm(flag),
				defaultOf(flag), flag.Help)
		}
	}
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
