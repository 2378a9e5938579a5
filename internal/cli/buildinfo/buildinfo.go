// Package buildinfo reports the version of a program.
package buildinfo

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// The linker sets these variables for a release that is built without its tag or its repository, such as a snapshot or
// an image: -X github.com/weir-project/weir/internal/cli/buildinfo.version=0.1.0. Each takes precedence over the build
// information of the Go toolchain.
var version, commit, date string

// Info is the version of a program, from the build information of the Go toolchain or from the linker. go install, a
// release and a build in a clone give the same fields.
type Info struct {
	Version string `json:"version"` // a release such as 0.1.0, a pseudo-version of a commit, or "devel"
	Commit  string `json:"commit,omitempty"`
	Date    string `json:"date,omitempty"` // of the commit, in RFC 3339
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// Read returns the version of this program.
func Read() Info {
	info, _ := debug.ReadBuildInfo()
	b := buildOf(info)
	b.Version = cmp.Or(version, b.Version)
	b.Commit = cmp.Or(commit, b.Commit)
	b.Date = cmp.Or(date, b.Date)
	return b
}

// buildOf reads the build information of the toolchain, which may be missing.
func buildOf(info *debug.BuildInfo) Info {
	b := Info{Version: "devel", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info == nil {
		return b
	}
	if v := info.Main.Version; v != "(devel)" {
		b.Version = cmp.Or(strings.TrimPrefix(v, "v"), b.Version)
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Commit = setting.Value
		case "vcs.time":
			b.Date = setting.Value
		}
	}
	return b
}

// String returns text like "weir 0.1.0, commit 1f0c..., 2026-11-25T10:00:00Z, go1.26.8 linux/amd64".
func (b Info) String() string {
	parts := []string{"weir " + b.Version}
	if b.Commit != "" {
		parts = append(parts, "commit "+b.Commit)
	}
	if b.Date != "" {
		parts = append(parts, b.Date)
	}
	return strings.Join(append(parts, fmt.Sprintf("%s %s/%s", b.Go, b.OS, b.Arch)), ", ")
}
