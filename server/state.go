package server

import "sync/atomic"

// serverState is what the sessions of a server share.
type serverState struct {
	table     *commandTable
	batches   *batchPool
	stats     *commandStats
	clients   *clientRegistry
	hub       *eventHub
	slowlog   *slowlog
	calendars *calendars
	pause     *pauser
	saver     *saver
	identity  identity
	// attention is above zero while every command needs a closer look: someone
	// monitors, or clients are paused.
	attention *atomic.Int32
}

func newServerState(cfg Config) serverState {
	table := newCommandTable()
	attention := new(atomic.Int32)
	return serverState{
		table:     table,
		batches:   newBatchPool(),
		stats:     newCommandStats(table.slots),
		clients:   newClientRegistry(),
		hub:       newEventHub(attention),
		slowlog:   newSlowlog(),
		calendars: newCalendars(),
		pause:     newPauser(attention),
		saver:     new(saver),
		identity:  newIdentity(cfg),
		attention: attention,
	}
}
