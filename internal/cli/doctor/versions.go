package doctor

import (
	"fmt"
	"path/filepath"

	"github.com/weir-project/weir/internal/cli/buildinfo"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore"
)

// lookAtVersions compares the versions of this program, the server and the data on disk.
func (d *Subject) lookAtVersions(up *running) []Finding {
	mine := Finding{Fine, "versions", "weir " + buildinfo.Read().Version, ""}
	if up != nil {
		mine.Found += ", and so is the server"
		if theirs := up.info["weir_version"]; theirs != buildinfo.Read().Version {
			mine = Finding{Doubt, "versions", fmt.Sprintf("weir %s, the server is %s", buildinfo.Read().Version,
				theirs), "restart the server to run this version"}
		}
	}
	if d.DataDir == "" {
		return []Finding{mine}
	}
	return []Finding{mine, d.lookAtData(up != nil)}
}

// lookAtData reports which node owns the data directory, and whether this program can read it. A running server keeps
// its state in a directory that is not empty, so an empty one is not the server's.
func (d *Subject) lookAtData(running bool) Finding {
	node, err := raftstore.OwnerOf(d.DataDir)
	if err == nil && node != "" {
		if want := d.NodeName; !raftstore.IsIncarnationOf(node, want) {
			return Finding{Wrong, "versions", fmt.Sprintf("%s belongs to node %q, but --node-id is %q", d.DataDir, node,
				want), "give the --node-id that the directory was created with, or another --data-dir"}
		}
		return Finding{Fine, "versions", d.DataDir + " belongs to this node, in a format that this version reads", ""}
	}
	format := 0
	if err == nil {
		format, err = persistence.FormatOf(d.DataDir)
	}
	switch {
	case err != nil:
		return Finding{Wrong, "versions", d.DataDir + ": " + oneLine(err),
			"correct it: weir does not start with this data directory"}
	case format == 0 && running:
		dir, _ := filepath.Abs(d.DataDir)
		return Finding{Doubt, "versions", "a server runs, and " + dir + " is empty: this is not its --data-dir",
			"run doctor in the directory where the server was started, or with its --data-dir"}
	case format == 0:
		return Finding{Fine, "versions", d.DataDir + " is empty or does not exist yet", ""}
	case d.Clustered:
		return Finding{Wrong, "versions", d.DataDir + " belongs to a server that runs alone",
			"choose another --data-dir, or leave out --node-id"}
	}
	return Finding{Fine, "versions", fmt.Sprintf("%s has data format %d, which this version reads", d.DataDir, format),
		""}
}
