package bench

import (
	"fmt"
	"path/filepath"

	"github.com/weir-project/weir/bench/servers"
)

// clusterSize is the smallest cluster that survives the loss of a node.
const clusterSize = 3

// WeirCluster is a cluster of weir with a durability, in its own directory below dir.
func WeirCluster(binary, dir string, size int, durability string) *servers.Cluster {
	return &servers.Cluster{Binary: binary, Dir: filepath.Join(dir, fmt.Sprintf("weir-x%d-%s", size, durability)),
		Size: size, Durability: durability}
}

// clustered returns a target at the leader of a cluster. It makes the cluster at the first call for an instance.
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

// onlyWhenAsked prevents automatic snapshots, which would fall into a quiet window.
var onlyWhenAsked = []string{"--snapshot-bytes", "64gb"}

// SnapshotCluster is a cluster with fsync whose nodes write snapshots only on request.
func SnapshotCluster(binary, dir string) *servers.Cluster {
	c := WeirCluster(binary, filepath.Join(dir, "snapshots"), clusterSize, "fsync")
	c.Args = onlyWhenAsked
	return c
}
