package commands

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/service"
	"github.com/weir-project/weir/server/timezone"
)

// ErrBadConfig reports that a setting is out of range.
var ErrBadConfig = errors.New("server: bad configuration")

// Config holds the settings of the commands. Zero numbers mean the defaults.
type Config struct {
	Addr    string // host:port of the server, as INFO and CONFIG GET show it; empty: only with TLS
	TLSAddr string // the same for clients that speak TLS; empty: none
	// Password and LoadUsers define the users that may log in. LoadUsers may be nil.
	Password      string
	LoadUsers     func() (*acl.Users, error)
	ProtectedMode bool
	EnableDebug   bool   // enable the DEBUG command
	Redirect      string // service.RedirectForward or service.RedirectMoved
	BlacklistKey  string // the key of the set of blocked addresses; empty: no such set
	DenyWhenFull  bool   // the limiter refuses new keys when memory is full, for CONFIG GET
	Version       string // weir's version, for INFO and HELLO
	MaxClients    int    // simultaneous connections
	MaxBulkBytes  int    // one argument
	MaxValueBytes int    // one string that a client stores
	Tracer        Tracer // nil: no tracing
	Logger        *slog.Logger
	OnShutdown    func() // called on its own goroutine; nil refuses SHUTDOWN
}

// Shared is the state that the sessions of a server share.
type Shared struct {
	*service.Service
	cfg       Config
	table     *commandTable
	clients   *clientRegistry
	calendars *timezone.Calendars
	saver     *saver
	backup    *backupSlot
	runID     string // 40 hexadecimal digits, new at every start
	// bulky has a slot for each bulky command that may run at once. It uses half the processors, so that decisions keep
	// the others.
	bulky       chan struct{}
	suggestions suggestions

	Held    Budget         // bytes that connections hold beyond their free share
	LastID  atomic.Int64   // the id of the newest session
	Running sync.WaitGroup // work that the server waits for when it stops
}

// complete fills in defaults and checks ranges.
func (c *Config) complete() error {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.MaxClients = cmp.Or(c.MaxClients, DefaultMaxClients)
	c.MaxBulkBytes = cmp.Or(c.MaxBulkBytes, DefaultMaxBulkBytes)
	c.MaxValueBytes = cmp.Or(c.MaxValueBytes, DefaultMaxValueBytes)
	c.Redirect = cmp.Or(c.Redirect, service.RedirectForward)
	switch {
	case len(c.BlacklistKey) > engine.MaxKeyLen || engine.Reserved([]byte(c.BlacklistKey)):
		return fmt.Errorf("%w: the blacklist key must be at most %d bytes and not begin like the limiters of "+
			"policies, not %q",
			ErrBadConfig, engine.MaxKeyLen, c.BlacklistKey)
	case c.Redirect != service.RedirectForward && c.Redirect != service.RedirectMoved:
		return fmt.Errorf("%w: redirect must be %s or %s, not %q",
			ErrBadConfig, service.RedirectForward, service.RedirectMoved, c.Redirect)
	case c.MaxValueBytes < 1 || c.MaxValueBytes > engine.MaxValueBytes:
		return fmt.Errorf("%w: max value bytes must be 1 to %d, not %d", ErrBadConfig,
			engine.MaxValueBytes, c.MaxValueBytes)
	}
	return nil
}
