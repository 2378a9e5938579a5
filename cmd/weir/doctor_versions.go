package main

import (
	"fmt"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore"
)

// lookAtVersions compares this program, the server and what is on disk.
func (d *doctorCmd) lookAtVersions(up *running) []finding {
	mine := finding{fine, "versions", "weir " + version(), ""}
	if up != nil {
		mine.Found += ", and so is the server"
		if theirs := up.info["weir_version"]; theirs != version() {
			mine = finding{doubt, "versions", fmt.Sprintf("weir %s, the server is %s", version(), theirs), "restart it, where this one is to run"}
		}
	}
	if d.DataDir == "" {
		return []finding{mine}
	}
	return []finding{mine, d.lookAtData()}
}

// lookAtData says whose the data directory is, and whether this program reads it.
func (d *doctorCmd) lookAtData() finding {
	node, err := raftstore.OwnerOf(d.DataDir)
	if err == nil && node != "" {
		if want := d.nodeName(); !raftstore.IsLifeOf(node, want) {
			return finding{wrong, "versions", fmt.Sprintf("%s is node %q's, this one is to be %q", d.DataDir, node, want), "give the --node-id it was begun with, or another --data-dir"}
		}
		return finding{fine, "versions", d.DataDir + " is this node's, in a format this weir reads", ""}
	}
	format := 0
	if err == nil {
		format, err = persistence.FormatOf(d.DataDir)
	}
	switch {
	case err != nil:
		return finding{wrong, "versions", d.DataDir + ": " + oneLine(err), "weir does not start with it"}
	case format == 0:
		return finding{fine, "versions", d.DataDir + " holds nothing yet", ""}
	case d.clustered():
		return finding{wrong, "versions", d.DataDir + " is of a server that ran alone", "choose another --data-dir, or leave out --node-id"}
	}
	return finding{fine, "versions", fmt.Sprintf("%s has data format %d, which this weir reads", d.DataDir, format), ""}
}

// nodeName is the id that a node with these flags has; "": none.
func (d *doctorCmd) nodeName() string {
	if d.clustered() && d.NodeID == "" {
		return soloID
	}
	return d.NodeID
}
