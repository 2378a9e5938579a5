package server

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

// session is everything about one client above the transport. Its methods
// belong to the connection's goroutine; what others may read stands in about.
type session struct {
	resp.Writer
	srv    *Server
	client client
	// closing asks the connection to close once out is written.
	closing bool

	// user is who has logged in, nil: nobody yet; limits is the same where there is
	// something that the user may not do, else nil.
	user, limits *acl.User
	// plain: decisions need no more than parsing, because the client is logged in,
	// in no transaction, not subscribed in RESP2 and listens to its replies.
	plain   bool
	failed  bool     // the command being carried out has answered an error
	running *command // the one being carried out that is no operation
	// confirmed: a ReadIndex for this run of reads has succeeded. staleMs is how old the
	// last read may have been. readonly: READONLY was sent, so reads may be stale.
	confirmed bool
	staleMs   int64
	readonly  bool
	executing bool          // the commands of a transaction
	heldFor   time.Duration // in the command being carried out, waiting in line
	mute      muteMode
	batch     *service.Batch // operations not yet decided, or nil
	road      *Road          // of what was read last, while a tracer wants to know
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
	muteNone muteMode = iota
	muteAll
	muteNext // SKIP: the next command's
	muteThis
)

func newSession(srv *Server, c client) *session {
	s := &session{srv: srv, client: c, Writer: resp.Writer{Proto: 2}}
	s.about.Init(c.ID(), c.RemoteAddr(), c.LocalAddr())
	srv.state.clients.add(s)
	s.begin()
	return s
}

// close gives back what the session holds on the server.
func (s *session) close() {
	s.srv.state.clients.remove(s)
	s.srv.Events.Monitor(s, false)
	s.dropTopics()
	s.endTransaction()
	s.srv.state.backup.end(s)
}

func (s *session) authed() bool { return s.user != nil }

// pending is the number of operations waiting for settle.
func (s *session) pending() int {
	if s.batch == nil {
		return 0
	}
	return len(s.batch.Ops)
}

// full reports whether the batch has no room for so many operations more.
func (s *session) full(more int) bool {
	return s.batch != nil && (len(s.batch.Ops)+more > MaxBatch || s.batch.Values >= maxBatchValues)
}

// refresh works out plain again after something it depends on has changed.
func (s *session) refresh() {
	s.plain = s.user != nil && s.tx == nil && s.mute == muteNone && !s.onlyTopics()
}

// do carries out one command: it appends the reply to out or, for an operation,
// defers it. args must stay valid until the next settle returns.
func (s *session) do(args [][]byte) {
	if len(args) == 0 {
		return
	}
	if s.full(len(args)) {
		s.settle()
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
		s.settle()
		s.reject(cmd, err)
	}
}

// lookup is the table's find behind a memory of one command.
func (s *session) lookup(name []byte) *command {
	if r := &s.recent; string(name) == string(r.name[:r.len]) {
		return r.cmd
	}
	cmd := s.srv.state.table.find(name)
	if cmd != nil {
		s.recent.cmd, s.recent.len = cmd, copy(s.recent.name[:], name)
	}
	return cmd
}
