package commands

import "strings"

// helpSubcommand makes the HELP of a container from its other subcommands.
func helpSubcommand(cmd *command) *command {
	subs := cmd.subs
	return &command{name: "HELP", arity: 2, summary: "This text", run: func(s *Session, _ [][]byte) {
		lines := []string{cmd.name + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"}
		for _, sub := range subs {
			lines = append(lines, strings.TrimSpace(sub.name+" "+sub.syntax), "    "+sub.summary+".")
		}
		s.Array(len(lines) + 2)
		for _, line := range append(lines, "HELP", "    Print this help.") {
			s.Simple(line)
		}
	}}
}

func (c *command) title() string { return strings.ToUpper(strings.ReplaceAll(c.Full, "|", " ")) }

// usage is the command with its arguments; of a container it names the way to more.
func (c *command) usage() string {
	if len(c.subs) > 0 && c.syntax == "" {
		return c.title() + " subcommand [argument ...]; " + c.title() + " HELP lists them"
	}
	return strings.TrimSpace(c.title() + " " + c.syntax)
}
