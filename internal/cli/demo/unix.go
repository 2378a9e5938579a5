//go:build unix

package demo

import (
	"os"
	"strings"
	"syscall"
)

// apartFromTerminal keeps Ctrl-C from the nodes. Only weir demo receives it, and stops the nodes.
func apartFromTerminal() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func isHangup(s os.Signal) bool { return s == syscall.SIGHUP }

// shellQuoted quotes a path for a shell.
func shellQuoted(path string) string {
	plain := func(r rune) bool {
		return r == '/' || r == '.' || r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' ||
			r >= 'a' && r <= 'z'
	}
	if strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
