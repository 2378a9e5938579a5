package commands

import (
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// client is what a session needs of the connection under it.
type client interface {
	ID() int64
	RemoteAddr() string
	LocalAddr() string
	// Kill cuts the connection. Any goroutine may call it.
	Kill()
	// Push queues a message from any goroutine; false when it is refused.
	Push([]byte) bool
	// MayBlock says that what the session does next may take longer than other
	// connections should wait.
	MayBlock()
	// Hold calls wait, which may take long and leaves alone what was answered before.
	// gone has a word, or is closed, once the client has gone or sends no more.
	Hold(wait func(gone <-chan struct{}))
}

// Session is everything about one client above the transport. Its methods
// belong to the connection's goroutine; what others may read stands in about.
type Session struct {
	resp.Writer
	srv    *Shared
	client client
	// Closing asks the connection to close once out is written.
	Closing bool

	// user is who has logged in, nil: nobody yet; limits is the same where there is
	// something that the user may not do, else nil.
	user, limits *acl.User
	// plain: decisions need no more than parsing, because the client is logged in,
	// in no transaction, not subscribed in RESP2 and listens to its replies.
	plain   bool
	failed  bool     // the command being carried out has answered an error
	running *command // the one being carried out that is no operation
	// Confirmed: a ReadIndex for this run of reads has succeeded. staleMs is how old the
	// last read may have been. readonly: READONLY was sent, so reads may be stale.
	Confirmed bool
	staleMs   int64
	readonly  bool
	executing bool          // the commands of a transaction
	heldFor   time.Duration // in the command being carried out, waiting in line
	Mute      muteMode
	batch     *service.Batch // operations not yet decided, or nil
	Road      *Road          // of what was read last, while a tracer wants to know
	tx        *transaction
	topics    topics
	about     service.Client

	// What the client's last limits said, so that it need not be read again.
	rates   memo[engine.Rate]
	windows memo[int64]
	steps   engine.Steps

	recent struct { // the command of the last lookup: pipelines repeat themselves
		name [maxNameBytes]byte
		len  int
		cmd  *command
	}
}

// muteMode says which replies CLIENT REPLY keeps back.
type muteMode uint8

const (
	MuteNone muteMode = iota
	muteAll
	muteNext // SKIP: the next command's
	muteThis
)

func NewSession(srv *Shared, c client) *Session {
	s := &Session{srv: srv, client: c, Writer: resp.Writer{Proto: 2}}
	s.about.Init(c.ID(), c.RemoteAddr(), c.LocalAddr())
	srv.clients.add(s)
	s.begin()
	return s
}

// Close gives back what the session holds on the server.
func (s *Session) Close() {
	s.srv.clients.remove(s)
	s.srv.Events.Monitor(s, false)
	s.dropTopics()
	s.endTransaction()
	s.srv.backup.end(s)
}

func (s *Session) Authed() bool { return s.user != nil }

// Pending is the number of operations waiting for settle.
func (s *Session) Pending() int {
	if s.batch == nil {
		return 0
	}
	return len(s.batch.Ops)
}

// Full reports whether the batch has no room for so many operations more.
func (s *Session) Full(more int) bool {
	return s.batch != nil && (len(s.batch.Ops)+more > MaxBatch || s.batch.Values >= maxBatchValues)
}

// refresh works out plain again after something it depends on has changed.
func (s *Session) refresh() {
	s.plain = s.user != nil && s.tx == nil && s.Mute == MuteNone && !s.onlyTopics()
}

// Do carries out one command: it appends the reply to out or, for an operation,
// defers it. args must stay valid until the next settle returns.
func (s *Session) Do(args [][]byte) {
	if len(args) == 0 {
		return
	}
	if s.Full(len(args)) {
		s.Settle()
	}
	cmd := s.lookup(args[0])
	if cmd == nil || !cmd.quick || !s.plain || !cmd.fits(len(args)) ||
		s.limits != nil && !cmd.allowedTo(s.limits) || s.srv.Attention.Load() != 0 {
		s.doWithCare(args)
		return
	}
	if err := s.plan(cmd, args); err == errAlone {
		s.doWithCare(args)
	} else if err != nil {
		s.Settle()
		s.reject(cmd, err)
	}
}

// lookup is the table's find behind a memory of one command.
func (s *Session) lookup(name []byte) *command {
	if r := &s.recent; string(name) == string(r.name[:r.len]) {
		return r.cmd
	}
	cmd := s.srv.table.find(name)
	if cmd != nil {
		s.recent.cmd, s.recent.len = cmd, copy(s.recent.name[:], name)
	}
	return cmd
}
