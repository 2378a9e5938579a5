package server

import (
	"runtime"
	"sync/atomic"
)

// serverState is what the sessions of a server share.
type serverState struct {
	table     *commandTable
	batches   *batchPool
	stats     *commandStats
	book      *policyBook
	recent    *recentDenials
	clients   *clientRegistry
	hub       *eventHub
	slowlog   *slowlog
	calendars *calendars
	pause     *pauser
	waits     *waitLines
	saver     *saver
	rls       *rlsStats
	backup    *backupSlot
	identity  identity
	// bulky has room for as many bulky commands as may run at once: half the
	// processors, so that deciding keeps the others.
	bulky chan struct{}
	// attention is above zero while every command needs a closer look: someone
	// monitors, or clients are paused.
	attention *atomic.Int32
}

func newServerState(cfg Config) serverState {
	table := newCommandTable(families()...)
	attention := new(atomic.Int32)
	return serverState{
		table:     table,
		batches:   newBatchPool(),
		stats:     newCommandStats(table.slots),
		book:      new(policyBook),
		recent:    new(recentDenials),
		clients:   newClientRegistry(),
		hub:       newEventHub(attention),
		slowlog:   newSlowlog(),
		calendars: newCalendars(),
		pause:     newPauser(attention),
		waits:     newWaitLines(),
		saver:     new(saver),
		rls:       new(rlsStats),
		backup:    new(backupSlot),
		identity:  newIdentity(cfg),
		bulky:     make(chan struct{}, max(runtime.GOMAXPROCS(0)/2, 1)),
		attention: attention,
	}
}
