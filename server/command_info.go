package server

// commandInfo is what statistics, monitors and pauses need to know of a command.
type commandInfo struct {
	full   string // lower case, with the container: "client|setname"
	slot   int    // of its statistics
	secret bool   // its arguments are not shown to anyone
	write  bool   // held back by CLIENT PAUSE WRITE
	exempt bool   // not held back by CLIENT PAUSE ALL
}

// shownArgs is a command as SLOWLOG and MONITOR may show it.
func shownArgs(cmd *commandInfo, args [][]byte) []string {
	shown := make([]string, 0, len(args))
	for i, a := range args {
		if cmd.secret && i > 0 {
			return append(shown, "(redacted)")
		}
		shown = append(shown, string(a))
	}
	return shown
}
