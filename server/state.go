package server

import (
	"runtime"

	"github.com/weir-project/weir/server/service"
	"github.com/weir-project/weir/server/timezone"
)

// serverState is what the sessions of a server share, and no other protocol needs.
type serverState struct {
	table     *commandTable
	clients   *clientRegistry
	calendars *timezone.Calendars
	saver     *saver
	backup    *backupSlot
	runID     string // 40 hexadecimal digits, new at every start
	// bulky has room for as many bulky commands as may run at once: half the
	// processors, so that deciding keeps the others.
	bulky chan struct{}
}

func newServerState(table *commandTable, shared *service.Service) serverState {
	return serverState{
		table:     table,
		clients:   newClientRegistry(&shared.Clients),
		calendars: timezone.NewCalendars(),
		saver:     new(saver),
		backup:    new(backupSlot),
		runID:     newRunID(),
		bulky:     make(chan struct{}, max(runtime.GOMAXPROCS(0)/2, 1)),
	}
}
