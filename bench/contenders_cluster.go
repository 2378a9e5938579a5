package bench

import "path/filepath"

// clusterSize is the smallest cluster that survives a node.
const clusterSize = 3

// WeirCluster is three nodes of weir with a durability, in a directory of their own
// below dir.
func WeirCluster(binary, dir, durability string) *Cluster {
	return &Cluster{Binary: binary, Dir: filepath.Join(dir, "weir-x3-"+durability), Size: clusterSize, Durability: durability}
}

// onlyWhenAsked keeps a node from writing a snapshot by itself: it would fall into a
// window that is to be quiet.
var onlyWhenAsked = []string{"--snapshot-bytes", "64gb"}

// SnapshotCluster is fsynced nodes whose snapshots come only when asked for.
func SnapshotCluster(binary, dir string) *Cluster {
	c := WeirCluster(binary, filepath.Join(dir, "snapshots"), "fsync")
	c.Args = onlyWhenAsked
	return c
}

// The targets of the cluster's suite, as its table and its goals call them.
const (
	leaderName   = "weir x3 fsync"
	followerName = "weir x3 fsync, follower"
	osName       = "weir x3 os"
)

// ClusterTargets are the contenders of the cluster's suite: fsynced nodes through
// their leader and through a follower, nodes that write without fsync, weir alone,
// and Redis without a replica.
func ClusterTargets(weir, redisServer, dir string) []Target {
	synced, unsynced := WeirCluster(weir, dir, "fsync"), WeirCluster(weir, dir, "os")
	admitted := map[Workload]Command{TokenBucket: weirCommands()[TokenBucket]}
	return []Target{
		{Name: leaderName, Server: synced, Commands: weirCommands(), Settle: settleWeir},
		{Name: followerName, Server: Follower{synced}, Commands: admitted, Settle: settleWeir},
		{Name: osName, Server: unsynced, Commands: admitted, Settle: settleWeir},
		Weir(weir, dir),
		RedisLua(redisServer, dir),
	}
}
