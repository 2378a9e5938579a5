package bench

import (
	"fmt"
	"path/filepath"

	"github.com/weir-project/weir/bench/servers"
)

// clusterSize is the smallest cluster that survives a node.
const clusterSize = 3

// WeirCluster is nodes of weir with a durability, in a directory of their own below dir.
func WeirCluster(binary, dir string, size int, durability string) *servers.Cluster {
	return &servers.Cluster{Binary: binary, Dir: filepath.Join(dir, fmt.Sprintf("weir-x%d-%s", size, durability)), Size: size, Durability: durability}
}

// clustered is the leader of a cluster; the same cluster whenever it is asked for.
func (c *Contenders) clustered(instance string, size int, durability string) (Target, error) {
	key := fmt.Sprint(size, durability, instance)
	if c.clusters[key] == nil {
		if c.clusters == nil {
			c.clusters = make(map[string]*servers.Cluster)
		}
		c.clusters[key] = WeirCluster(c.Tools.Weir, c.path("cluster"), size, durability)
	}
	return Target{Server: c.clusters[key], Commands: weirCommands(), Settle: settleWeir}, nil
}

// onlyWhenAsked keeps a node from writing a snapshot by itself: it would fall into a
// window that is to be quiet.
var onlyWhenAsked = []string{"--snapshot-bytes", "64gb"}

// SnapshotCluster is fsynced nodes whose snapshots come only when asked for.
func SnapshotCluster(binary, dir string) *servers.Cluster {
	c := WeirCluster(binary, filepath.Join(dir, "snapshots"), clusterSize, "fsync")
	c.Args = onlyWhenAsked
	return c
}
