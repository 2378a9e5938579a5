package service

// Command is what statistics, monitors and pauses need to know of a command.
type Command struct {
	Full   string // lower case, with the container: "client|setname"
	Slot   int    // of its statistics
	Secret bool   // its arguments are not shown to anyone
	Write  bool   // held back by CLIENT PAUSE WRITE
	Exempt bool   // not held back by CLIENT PAUSE ALL
}

// ShownArgs is a command as SLOWLOG and MONITOR may show it.
func ShownArgs(cmd *Command, args [][]byte) []string {
	shown := make([]string, 0, len(args))
	for i, a := range args {
		if cmd.Secret && i > 0 {
			return append(shown, "(redacted)")
		}
		shown = append(shown, string(a))
	}
	return shown
}
