//go:build !unix

package demo

import (
	"os"
	"strconv"
	"syscall"
)

func apartFromTerminal() *syscall.SysProcAttr { return nil }

func isHangup(os.Signal) bool { return false }

func shellQuoted(path string) string { return strconv.Quote(path) }
