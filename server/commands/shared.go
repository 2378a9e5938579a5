package commands

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/service"
	"github.com/weir-project/weir/server/timezone"
)

// ErrBadConfig reports that a setting is out of range.
var ErrBadConfig = errors.New("server: bad configuration")

// Config holds the settings of a server: of its commands, and of the connections that package server gives them. Zero
// numbers mean the defaults.
type Config struct {
	Addr    string // host:port of the server, for INFO and CONFIG GET; empty: only TLS
	TLSAddr string // the same for TLS clients; empty: no TLS
	// Password is the password of the user default. If it is empty, no password is required, unless LoadUsers returns
	// users. LoadUsers reads the other users at the start and for ReloadUsers. If it is nil, default is the only user.
	Password      string
	LoadUsers     func() (*acl.Users, error)
	ProtectedMode bool // without a password, answer only clients on this machine
	EnableDebug   bool // the DEBUG command
	// Redirect selects how a follower treats decisions, and the commands that correct them (reset, refund, release,
	// block and more). RedirectForward (the default) forwards them to the leader and returns its answer. RedirectMoved
	// answers MOVED with the leader's address.
	Redirect string
	// BlacklistKey is the key on which SADD, SREM and the other set commands read and change the addresses that are
	// blocked everywhere. If it is empty, these commands work on no key.
	BlacklistKey string
	// SentinelName is the name of the primary for clients that use Sentinel.
	SentinelName string
	DenyWhenFull bool   // the limiter refuses new keys when memory is full, for CONFIG GET
	Version      string // weir's version, for INFO and HELLO

	MaxClients     int           // connections at once
	MaxPerSource   int           // of these, from one address or IPv6 network; 0: no such limit
	MaxBulkBytes   int           // one argument, 1 KiB to server.LargestMaxBulkBytes
	MaxValueBytes  int           // one string that a client keeps, 1 to engine.MaxValueBytes
	MaxOutputBytes int           // pushed messages waiting for one client
	WriteTimeout   time.Duration // time that a reply may wait for its reader
	AuthTimeout    time.Duration // time until a client must have authenticated

	Tracer     Tracer       // nil: no tracing
	Logger     *slog.Logger // nil: slog.Default()
	OnShutdown func()       // called on its own goroutine when a client sends SHUTDOWN; nil refuses the command
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
	c.SentinelName = cmp.Or(c.SentinelName, DefaultSentinelName)
	c.Redirect = cmp.Or(c.Redirect, service.RedirectForward)
	switch {
	case c.BlacklistKey != "" && arg.CheckKey([]byte(c.BlacklistKey)) != nil || engine.Reserved([]byte(c.BlacklistKey)):
		return fmt.Errorf("%w: the blacklist key must be at most %d bytes and not begin like the limiters of "+
			"policies, not %q",
			ErrBadConfig, engine.MaxKeyLen, c.BlacklistKey)
	case strings.ContainsFunc(c.SentinelName, func(r rune) bool { return r <= ' ' }):
		return fmt.Errorf("%w: the sentinel name must have no spaces, because a space ends it in messages to clients, "+
			"not %q", ErrBadConfig, c.SentinelName)
	case c.Redirect != service.RedirectForward && c.Redirect != service.RedirectMoved:
		return fmt.Errorf("%w: redirect must be %s or %s, not %q",
			ErrBadConfig, service.RedirectForward, service.RedirectMoved, c.Redirect)
	case c.MaxValueBytes < 1 || c.MaxValueBytes > engine.MaxValueBytes:
		return fmt.Errorf("%w: max value bytes must be 1 to %d, not %d", ErrBadConfig,
			engine.MaxValueBytes, c.MaxValueBytes)
	}
	return nil
}
