package membership

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/wire"
)

// Cluster records which cluster this node belongs to, and compares the node's options with the cluster's constants.
type Cluster struct {
	TestClock    bool
	IDLifetimeNs int64
	EventsBytes  int64 // the bound of the events
	Groups       int   // of this process
	Replicas     int   // as in host.Options
	// BelongTo records the cluster in the data directory, and reports whether that is news.
	BelongTo func(clusterID string, groups wire.GroupCount, replicas int) (news bool, err error)
	Log      *slog.Logger
	Fatal    func(error) // stops this node
}

// Joined records the cluster of this node and checks the constants that its nodes agreed on.
func (c *Cluster) Joined(f fsm.Constants) {
	if f.TestClock != c.TestClock {
		c.Fatal(fmt.Errorf("%w: the cluster uses a test clock: %t, this node: %t", failure.ErrClockKind, f.TestClock,
			c.TestClock))
	}
	if f.IDLifetimeNs != c.IDLifetimeNs {
		c.Log.Warn("the cluster remembers idempotency keys for another time than this node's flag says; the "+
			"cluster's setting applies",
			"cluster", time.Duration(f.IDLifetimeNs), "here", time.Duration(c.IDLifetimeNs))
	}
	if f.EventsBound() != c.EventsBytes {
		c.Log.Warn("the cluster keeps events in another memory than this node's flag says; the cluster's setting "+
			"applies",
			"cluster", f.EventsBound(), "here", c.EventsBytes)
	}
	news, err := c.BelongTo(f.ClusterID, f.Groups, f.Replicas)
	if err != nil {
		c.Fatal(err)
	}
	if has := f.Groups.N(); has != c.Groups {
		c.Fatal(fmt.Errorf("%w: it has %d and this node has opened %d", failure.ErrGroups, has, c.Groups))
	}
	if f.Replicas != c.Replicas {
		c.Fatal(fmt.Errorf("%w: it keeps %d replicas of each and this node expected %d (0: one on every node)",
			failure.ErrGroups, f.Replicas, c.Replicas))
	}
	if news {
		c.Log.Info("this node belongs to a cluster", "cluster", f.ClusterID)
	}
}
