package membership

import (
	"fmt"
	"time"

	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/host"
)

// Cluster records which cluster this node belongs to, and compares the node's options with the cluster's constants.
type Cluster struct {
	*host.Host
}

// Joined records the cluster of this node and checks the constants that its nodes agreed on.
func (c *Cluster) Joined(f fsm.Constants) {
	if f.TestClock != c.TestClock {
		c.Fatal(fmt.Errorf("%w: the cluster uses a test clock: %t, this node: %t", failure.ErrClockKind, f.TestClock,
			c.TestClock))
	}
	if f.IDLifetimeNs != c.IdLifetimeNs {
		c.Log.Warn("the cluster remembers idempotency keys for another time than this node's flag says; the "+
			"cluster's setting applies",
			"cluster", time.Duration(f.IDLifetimeNs), "here", time.Duration(c.IdLifetimeNs))
	}
	news, err := c.Identity.BelongTo(f.ClusterID, f.Groups)
	if err != nil {
		c.Fatal(err)
	}
	if has, want := max(f.Groups, 1), max(c.Options.Groups, 1); has != want {
		c.Fatal(fmt.Errorf("%w: it has %d and this node has opened %d", failure.ErrGroups, has, want))
	}
	if news {
		c.Log.Info("this node belongs to a cluster", "cluster", f.ClusterID)
	}
}
