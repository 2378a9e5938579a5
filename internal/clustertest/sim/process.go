package sim

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/router"
	"github.com/weir-project/weir/raftstore/sharedlog"
)

const (
	// secret is the secret of the cluster.
	secret = "simulated"
	// heartbeat is short, so that elections are short.
	heartbeat = 100 * time.Millisecond
	// snapshotBytes is small, so that followers often receive a snapshot.
	snapshotBytes = 6 << 10
	// idLifetime is longer than any run.
	idLifetime = time.Hour
	// maxCredit and maxStep are the values of --max-downtime-credit and --max-calendar-step.
	maxCredit, maxStep = 2 * time.Hour, 5 * time.Hour
)

// process is one run of a node.
type process struct {
	host  *host
	node  *router.Node
	group []replica // of this node, by number
	disk  *disk
	logs  logs
	end   *endpoint
	dead  chan struct{} // closed at its end
	once  sync.Once
	calls atomic.Int64 // calls of clients in progress
	drain atomic.Bool  // accepts no more calls
	stops stops        // active failpoints

	shared *sharedlog.Log // on the only one of logs; nil: there is one group

	closing atomic.Bool
	closed  chan struct{}
	failure error // error of close
}

// opensLater reports whether a replica is not open yet whose log has its votes: it has not noted that it is a member.
func opensLater(o *raftstore.Options) bool {
	for group := range o.Groups {
		if has, err := raftstore.ReplicaIn(*o, group); err != nil || has.NodeID != "" && !has.Removed && !has.Joined {
			return true
		}
	}
	return false
}

func (p *process) open() (err error) {
	h, s := p.host, p.host.sim
	p.end = s.net.attach(h.addr)
	o := raftstore.Options{
		NodeID: h.id, DataDir: dataDir, Listener: p.end, RaftAddr: h.addr, ClientAddr: h.id,
		Join: s.foundersFor(h), Expect: len(s.founders), Secret: []byte(secret),
		Heartbeat: heartbeat, SnapshotBytes: snapshotBytes, MaxDowntimeCredit: maxCredit, MaxCalendarStep: maxStep,
		Table:   engine.Options{Shards: 8, IDLifetimeNs: int64(idLifetime)},
		Logger:  s.logger.With(slog.String("node", h.id)),
		OnFatal: p.fatal, Faults: s.config.Faults,
		Source: h.clock, FS: p.disk, Dialer: p.end.Dial, Failpoint: p.failpoint,
		Groups: s.groups(), Replicas: s.config.Replicas, Zone: h.zone,
	}
	if err := p.openLogs(&o, s.config.Faults.Has(faults.NoSync)); err != nil {
		return err
	}
	if p.node, p.group, err = openNode(o); err != nil {
		return errors.Join(err, p.closeLogs())
	}
	if o.Replicas > 0 && !opensLater(&o) {
		_ = p.shared.DropClosed() // as a node with a log of its own does; a log that fails ends the node by itself
	}
	return nil
}
