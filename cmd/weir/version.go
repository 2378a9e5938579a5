package main

import (
	"runtime/debug"
	"strings"
)

// version is the module version the Go toolchain stamped into the binary: a
// release, a commit, or "devel" where neither is known.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return strings.TrimPrefix(info.Main.Version, "v")
}
