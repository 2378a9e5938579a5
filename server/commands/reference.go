package commands

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ErrNoCommand reports that WriteHelp was asked about an unknown command.
var ErrNoCommand = errors.New("no such command")

// WriteHelp writes the reference of one command or subcommand ("client list"). With an empty name it writes one line
// for each command. It returns ErrNoCommand for an unknown name.
func WriteHelp(w io.Writer, name string) error {
	table := newCommandTable(families()...)
	var b strings.Builder
	if name == "" {
		for _, cmd := range table.all {
			fmt.Fprintf(&b, "%-18s %s\n", cmd.name, cmd.summary)
		}
	} else {
		cmd := table.named([]byte(strings.Join(strings.Fields(name), "|")))
		if cmd == nil {
			return fmt.Errorf("%w: %s", ErrNoCommand, name)
		}
		cmd.writeReference(&b, nil)
	}
	_, err := io.WriteString(w, strings.TrimLeft(b.String(), "\n"))
	return err
}

// writeReference writes the section of a command. It leaves out the known arguments, which the page explains elsewhere.
func (c *command) writeReference(b *strings.Builder, known []param) {
	fmt.Fprintf(b, "\n### %s\n\n%s.\n", c.title(), c.summary)
	if len(c.subs) == 0 {
		fmt.Fprintf(b, "\n    %s\n", c.usage())
	}
	if c.details != "" {
		b.WriteString("\n" + c.details + "\n")
	}
	if c.noEffect != "" {
		b.WriteString("\n" + strings.TrimSpace(c.withoutEffect()) + "\n")
	}
	own := slices.DeleteFunc(slices.Clone(c.params), func(p param) bool { return slices.Contains(known, p) })
	if len(own) > 0 {
		b.WriteString("\n")
	}
	for _, p := range own {
		fmt.Fprintf(b, "- `%s`: %s\n", p.name, p.meaning)
	}
	if c.reply != "" && (known == nil || c.reply != fiveReply) {
		b.WriteString("\nReply: " + c.reply + "\n")
	}
	if c.cost != "O(1)" {
		b.WriteString("\nComplexity: " + c.cost + "\n")
	}
	if len(c.subs) > 0 {
		b.WriteString("\n| subcommand | |\n|---|---|\n")
		for _, sub := range c.subs {
			if sub.name == "HELP" {
				continue // every command with subcommands has it
			}
			text := strings.TrimSpace(sub.summary + ". " + sub.withoutEffect() + sub.details + " " + sub.reply)
			fmt.Fprintf(b, "| `%s` | %s |\n", strings.ReplaceAll(sub.usage(), "|", "\\|"), text)
		}
	}
	if len(c.shown) > 0 {
		b.WriteString("\n```\n")
		for _, e := range c.shown {
			if e.note == "" {
				fmt.Fprintf(b, "> %s\n%s\n", e.send, e.answer)
			} else {
				fmt.Fprintf(b, "> %s\n%s   # %s\n", e.send, e.answer, e.note)
			}
		}
		b.WriteString("```\n")
	}
}

// withoutEffect tells that the command does nothing, and why that is no loss.
func (c *command) withoutEffect() string {
	if c.noEffect == "" {
		return ""
	}
	return "Without effect: " + c.noEffect + ". "
}
