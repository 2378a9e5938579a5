package buildinfo

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBuildOf checks the version text of a release, of a commit of a clone, and of a program without build
// information.
func TestBuildOf(t *testing.T) {
	for want, info := range map[string]*debug.BuildInfo{
		"weir 0.1.0, ": {Main: debug.Module{Version: "v0.1.0"}},
		"weir 0.0.0-20261125100000-1f0c, commit 1f0c, 2026-11-25T10:00:00Z, ": {
			Main: debug.Module{Version: "v0.0.0-20261125100000-1f0c"},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "1f0c"},
				{Key: "vcs.time", Value: "2026-11-25T10:00:00Z"}},
		},
		"weir devel, ": {Main: debug.Module{Version: "(devel)"}},
	} {
		require.Equal(t, want+runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH, buildOf(info).String())
	}
	require.Equal(t, "devel", buildOf(nil).Version)
	require.Equal(t, "devel", buildOf(&debug.BuildInfo{}).Version)
}

// TestStampsWin checks that values set at build time take precedence over the module's build information.
func TestStampsWin(t *testing.T) {
	t.Cleanup(func() { version, commit, date = "", "", "" })
	version, commit, date = "0.1.0-snapshot", "1f0c", "2026-11-25T10:00:00Z"
	require.Equal(t, "weir 0.1.0-snapshot, commit 1f0c, 2026-11-25T10:00:00Z, "+
		runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH, Read().String())
}

func TestVersionsAreTold(t *testing.T) {
	b := Info{Version: "0.1.0", Commit: "1f0c", Date: "2026-11-25T10:00:00Z", Go: "go1.26", OS: "linux", Arch: "arm64"}
	require.Equal(t, "weir 0.1.0, commit 1f0c, 2026-11-25T10:00:00Z, go1.26 linux/arm64", b.String())
	b.Commit, b.Date = "", ""
	require.Equal(t, "weir 0.1.0, go1.26 linux/arm64", b.String())
}
