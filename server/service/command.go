package service

// Command is the part of a command that statistics, monitors and pauses need.
type Command struct {
	Full   string // lower case, with the container: "client|setname"
	Slot   int    // index of its statistics
	Secret bool   // its arguments are never shown
	Write  bool   // CLIENT PAUSE WRITE delays it
	Exempt bool   // CLIENT PAUSE ALL does not delay it
}

// ShownArgs returns a command as SLOWLOG and MONITOR show it, with secrets redacted.
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
