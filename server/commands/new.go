package commands

import (
	"crypto/rand"
	"encoding/hex"
	"runtime"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/service"
	"github.com/weir-project/weir/server/timezone"
)

// NewShared makes the state of a server's sessions. It fails with ErrBadConfig, or if it cannot read the users.
func NewShared(cfg Config, lim limiter.Limiter) (*Shared, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	table := newCommandTable(families()...)
	svc := service.New(lim, table.infos(), cfg.Logger)
	svc.Version, svc.MaxClients = cfg.Version, cfg.MaxClients
	svc.ProtectedMode, svc.Inspect = cfg.ProtectedMode, &table.find([]byte("RL.INSPECT")).Command
	svc.Check, svc.Redirects = &table.find([]byte("RL.CHECK")).Command, cfg.Redirect == service.RedirectMoved
	s := &Shared{
		Service:   svc,
		cfg:       cfg,
		table:     table,
		clients:   newClientRegistry(&svc.Clients),
		calendars: timezone.NewCalendars(),
		saver:     new(saver),
		backup:    new(backupSlot),
		runID:     newRunID(),
		bulky:     make(chan struct{}, max(runtime.GOMAXPROCS(0)/2, 1)),
	}
	return s, s.ReloadUsers()
}

// newRunID returns 40 hexadecimal digits, new at every start.
func newRunID() string {
	var random [20]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}

// families returns all commands, in the order of the reference. A family is a function that returns rows. A new family
// needs a line here, and "make docs" afterwards.
func families() [][]*command {
	return [][]*command{
		decideCommands(), {rlWaitCommand()}, policyCommands(), correctionCommands(), blacklistCommands(),
		lookCommands(), eventCommands(),
		hashCommands(), keyCommands(), dialectCommands(), scriptCommands(), countCommands(), stringCommands(),
		connectionCommands(), {clientCommand()}, multiCommands(), pubsubCommands(),
		serverCommands(), configCommands(), slowlogCommands(), {commandCommand(), aclCommand(), debugCommand()},
		clusterCommands(), {sentinelCommand(), weirClusterCommand(), weirBackupCommand()},
	}
}

// ParseUsers parses a users file; see package acl.
func ParseUsers(text []byte) (*acl.Users, error) {
	return acl.Parse(newCommandTable(families()...), text)
}
