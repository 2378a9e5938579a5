package chaos

import (
	"context"
	"math/rand/v2"
	"time"
)

// Kind names a fault.
type Kind string

// The faults of processes and disks.
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

// The faults of the network.
const (
	Partition     Kind = "partition"
	PartitionOne  Kind = "one-way"
	PartitionAll  Kind = "all-apart"
	IsolateLeader Kind = "isolate-leader"
	SlowLink      Kind = "delay"
	ResetLinks    Kind = "reset"
)

// ProcessKinds and NetworkKinds are the two tracks of a run: a node dies while
// another is cut off, and neither fault waits for the other.
func ProcessKinds() []Kind {
	return []Kind{KillOne, KillLeader, KillAll, PauseOne, PauseLeader, Roll, StepWall, TransferLead, FillDisk, DamageLog}
}

func NetworkKinds() []Kind {
	return []Kind{Partition, PartitionOne, PartitionAll, IsolateLeader, SlowLink, ResetLinks}
}

// wallStep is how far a wall clock is put wrong.
const wallStep = time.Hour

// hand is what a fault works with.
type hand struct {
	*Cluster
	rng   *rand.Rand
	lasts time.Duration
}

// faults says how each kind is done and undone. Every one returns with the
// cluster whole again, also when ctx is over early.
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

	Partition:     func(ctx context.Context, h hand) error { return h.cut(ctx, h.halves) },
	PartitionOne:  func(ctx context.Context, h hand) error { return h.cut(ctx, h.oneWay) },
	PartitionAll:  func(ctx context.Context, h hand) error { return h.cut(ctx, func() { h.Mesh.Split() }) },
	IsolateLeader: func(ctx context.Context, h hand) error { return h.cut(ctx, h.isolate) },
	SlowLink:      func(ctx context.Context, h hand) error { return h.cut(ctx, h.slow) },
	ResetLinks:    func(_ context.Context, h hand) error { h.Mesh.Reset(h.leader()); return nil },
}

// Do carries out one step of a schedule.
func (c *Cluster) Do(ctx context.Context, s Step) error {
	return faults[s.Kind](ctx, hand{c, rand.New(rand.NewPCG(s.Seed, 0)), s.For})
}

// anyone is the index of some node.
func (h hand) anyone() int { return h.rng.IntN(len(h.Nodes)) }

// leader is the index of the leader, or of some node when there is none.
func (h hand) leader() int {
	other := h.anyone() // drawn in any case, so that later draws do not depend on it
	if i := h.LeaderNow(); i >= 0 {
		return i
	}
	return other
}
