package service

// Command is the part of a command that statistics, monitors and pauses need.
type Command struct {
	Full   string // lower case, with the container: "client|setname"
	Slot   int    // index of its statistics
	Secret bool   // its arguments are never shown
	Write  bool   // CLIENT PAUSE WRITE delays it
	Exempt bool   // CLIENT PAUSE ALL does not delay it
	// Hides reports whether argument i may be a secret. A nil Hides hides none.
	Hides func(args [][]byte, i int) bool
}

const redacted = "(redacted)"

// ShownArgs returns a command as SLOWLOG, MONITOR and the audit log show it, with secrets redacted.
func ShownArgs(cmd *Command, args [][]byte) []string {
	shown := make([]string, 0, len(args))
	for i, a := range args {
		if cmd.Secret && i > 0 {
			return append(shown, redacted)
		}
		if cmd.Hides != nil && cmd.Hides(args, i) {
			a = []byte(redacted)
		}
		shown = append(shown, string(a))
	}
	return shown
}
