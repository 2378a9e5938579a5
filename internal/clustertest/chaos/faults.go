package chaos

import (
	"context"
	"math/rand/v2"
	"time"
)

// Kind names a fault.
type Kind string

// These are the faults of processes and disks.
const (
	KillOne      Kind = "kill"
	KillLeader   Kind = "kill-leader"
	KillAll      Kind = "kill-all"
	PauseOne     Kind = "pause"
	PauseLeader  Kind = "pause-leader"
	Roll         Kind = "rolling-restart"
	StepWall     Kind = "step-wall-clock"
	TransferLead Kind = "transfer"
	FillDisk     Kind = "fill-disk"
	DamageLog    Kind = "damage-log"
)

// These are the faults of the network.
const (
	Partition     Kind = "partition"
	PartitionOne  Kind = "one-way"
	PartitionAll  Kind = "all-apart"
	IsolateLeader Kind = "isolate-leader"
	SlowLink      Kind = "delay"
	ResetLinks    Kind = "reset"
)

// These are the faults of a cluster with several Raft groups.
const (
	CutPair     Kind = "one-way-pair"
	LoadGroup   Kind = "load-group"
	RemoveGroup Kind = "remove-group"
)

// MoveReplica is the fault of a cluster whose groups are on a part of the nodes.
const MoveReplica Kind = "move"

// SpreadKinds join the track of ProcessKinds in a cluster whose groups are on a part of the nodes.
func SpreadKinds() []Kind { return []Kind{MoveReplica} }

// GroupKinds join the track of ProcessKinds in a cluster with several groups. RemoveGroup replaces a node, so no
// process fault may happen at the same time.
func GroupKinds() []Kind { return []Kind{CutPair, LoadGroup, RemoveGroup} }

// ProcessKinds and NetworkKinds are the two tracks of a run. A node may crash while another is partitioned, because
// neither fault waits for the other.
func ProcessKinds() []Kind {
	return []Kind{KillOne, KillLeader, KillAll, PauseOne, PauseLeader, Roll, StepWall,
		TransferLead, FillDisk, DamageLog}
}

func NetworkKinds() []Kind {
	return []Kind{Partition, PartitionOne, PartitionAll, IsolateLeader, SlowLink, ResetLinks}
}

// wallStep is the error of a wrong wall clock.
const wallStep = time.Hour

// hand holds the inputs of a fault.
type hand struct {
	*Cluster
	rng   *rand.Rand
	lasts time.Duration
}

// faults lists how each kind is injected and reverted. Every function returns with a healthy cluster, also when ctx
// ends early.
var faults = map[Kind]func(context.Context, hand) error{
	KillOne:      func(ctx context.Context, h hand) error { return h.kill(ctx, h.anyone()) },
	KillLeader:   func(ctx context.Context, h hand) error { return h.kill(ctx, h.leader()) },
	KillAll:      func(_ context.Context, h hand) error { h.KillAll(); return h.StartAll() },
	PauseOne:     func(ctx context.Context, h hand) error { return h.pause(ctx, h.anyone()) },
	PauseLeader:  func(ctx context.Context, h hand) error { return h.pause(ctx, h.leader()) },
	Roll:         func(ctx context.Context, h hand) error { return h.Roll(ctx) },
	StepWall:     func(ctx context.Context, h hand) error { return h.stepWall(ctx) },
	TransferLead: func(_ context.Context, h hand) error { return h.transfer() },
	FillDisk:     func(ctx context.Context, h hand) error { return h.fillDisk(ctx) },
	DamageLog:    func(ctx context.Context, h hand) error { return h.damageLog(ctx) },

	CutPair:     func(ctx context.Context, h hand) error { return h.cut(ctx, h.oneWayPair) },
	LoadGroup:   func(ctx context.Context, h hand) error { return h.loadGroup(ctx) },
	RemoveGroup: func(ctx context.Context, h hand) error { return h.removeGroup(ctx) },
	MoveReplica: func(ctx context.Context, h hand) error { return h.moveReplica(ctx) },

	Partition:     func(ctx context.Context, h hand) error { return h.cut(ctx, h.halves) },
	PartitionOne:  func(ctx context.Context, h hand) error { return h.cut(ctx, h.oneWay) },
	PartitionAll:  func(ctx context.Context, h hand) error { return h.cut(ctx, func() { h.Mesh.Split() }) },
	IsolateLeader: func(ctx context.Context, h hand) error { return h.cut(ctx, h.isolate) },
	SlowLink:      func(ctx context.Context, h hand) error { return h.cut(ctx, h.slow) },
	ResetLinks:    func(_ context.Context, h hand) error { h.Mesh.Reset(h.leader()); return nil },
}

// Do runs one step of a schedule.
func (c *Cluster) Do(ctx context.Context, s Step) error {
	return faults[s.Kind](ctx, hand{c, rand.New(rand.NewPCG(s.Seed, 0)), s.For})
}

// anyone returns the index of a random node.
func (h hand) anyone() int { return h.rng.IntN(len(h.Nodes)) }

// leader returns the index of the leader, or of a random node if the cluster has no leader.
func (h hand) leader() int {
	other := h.anyone() // always drawn, so that later draws do not depend on the leader
	if i := h.LeaderNow(); i >= 0 {
		return i
	}
	return other
}
