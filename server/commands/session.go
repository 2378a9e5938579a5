package commands

import (
	"crypto/x509"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// client is the connection that a session needs.
type client interface {
	ID() int64
	RemoteAddr() string
	LocalAddr() string
	// Certificate returns the verified certificate of the client, or nil.
	Certificate() *x509.Certificate
	// SetAuthed reports that the session has a user now, so that the limits after AUTH apply, or no longer has one.
	// Before the first call it has none.
	SetAuthed(authed bool)
	// Kill cuts the connection. Any goroutine may call it.
	Kill()
	// Push queues a message, and returns false if it is refused. Any goroutine may call it.
	Push([]byte) bool
	// MayBlock announces that the next step of the session may take longer than other connections should wait.
	MayBlock()
	// Await calls wait, which may take long and does not touch earlier answers. gone receives a value or is closed when
	// the client has disconnected or sends no more.
	Await(wait func(gone <-chan struct{}))
}

// Session is the state of one client above the transport. Its methods belong to the connection's goroutine. Other
// goroutines may read the field about, and call MayHear, Deliver and Show.
type Session struct {
	resp.Reply // to the running command
	srv        *Shared
	client     client
	// Closing asks the connection to close when the replies have been sent.
	Closing bool

	// stays: the client cannot follow a redirect, so this node forwards.
	stays bool

	// user is the user who has logged in, or nil. limits equals user if some permission is missing, else it is nil.
	user, limits *acl.User
	// hears equals limits, for MayHear.
	hears atomic.Pointer[acl.User]
	// plain: decisions need only parsing, because the client is logged in, in no transaction, not subscribed in RESP2,
	// and listens to its replies.
	plain     bool
	failed    bool     // the running command has answered an error
	running   *command // the running command, unless it is an operation
	reads     limiter.Reader
	database  uint8         // the selected database; reads has it too
	staleMs   int64         // the upper bound of the age of the last read
	answerAt  int           // where the answer of the running read begins
	executing bool          // running the commands of a transaction
	heldFor   time.Duration // time that the running command has waited in a queue of RL.WAIT
	Mute      muteMode
	batch     *service.Batch   // operations not yet decided, or nil
	layouts   *engine.Policies // the policies when batch began, or nil if none had a layout
	Trace     *Trace           // trace of the last read, if the tracer picked it
	tx        *transaction
	topics    topics
	about     service.Client

	reader limits.Reader // remembers the last limits of the client

	recent struct { // the last command that lookup found, because pipelines repeat commands
		name [maxNameBytes]byte
		len  int
		cmd  *command
	}
}

// muteMode says which replies CLIENT REPLY suppresses.
type muteMode uint8

const (
	MuteNone muteMode = iota // ON: suppresses no reply
	muteAll                  // OFF: every reply
	muteNext                 // SKIP: the reply of the next command
	muteThis                 // the reply of the running command, which follows SKIP
)

// NewSession returns the session of a new client, with RESP2 and the user that begin selects. The session writes its
// replies to w. The caller must call Close.
func NewSession(srv *Shared, c client, w resp.Writer) *Session {
	s := &Session{srv: srv, client: c, Reply: resp.Reply{Writer: w}, reads: srv.Reader()}
	s.about.Init(c.ID(), c.RemoteAddr(), c.LocalAddr())
	srv.clients.add(s)
	s.begin()
	return s
}

// redirects reports whether this node redirects the client to the leader.
func (s *Session) redirects() bool { return s.srv.Redirects && !s.stays }

// redirect returns nil if this node executes an operation of the client: see service.Redirect.
func (s *Session) redirect(op *engine.Op) error {
	if s.stays {
		return nil
	}
	return s.srv.Redirect(op)
}

// Close releases the resources of the session on the server.
func (s *Session) Close() {
	s.srv.clients.remove(s)
	s.srv.Events.Monitor(s, false)
	s.dropTopics()
	s.endTransaction()
	s.srv.backup.end(s)
}

// Full reports whether the batch has no space for this many more operations, or for more strings in their answers.
func (s *Session) Full(more int) bool {
	return s.batch != nil && (len(s.batch.Ops)+more > MaxBatch || s.batch.Values >= maxBatchValues)
}

// refresh computes plain again after one of its conditions has changed.
func (s *Session) refresh() {
	s.plain = s.user != nil && s.tx == nil && s.Mute == MuteNone && !s.onlyTopics()
}

// Do runs one command. It writes the reply or, for an operation, defers it. args must stay valid until the next
// DecidePending returns.
func (s *Session) Do(args [][]byte) {
	if len(args) == 0 {
		return
	}
	if s.Full(len(args)) {
		s.DecidePending()
	}
	cmd := s.lookup(args[0])
	if cmd == nil || !cmd.quick || !s.plain || !arg.Fits(cmd.arity, len(args)) ||
		s.limits != nil && !cmd.allowedTo(s.limits) || s.srv.SlowPath.Load() != 0 {
		s.doSlowPath(args)
		return
	}
	if err := s.plan(cmd, args); err == errAlone {
		s.doSlowPath(args)
	} else if err != nil {
		s.DecidePending()
		s.reject(cmd, err)
	}
}

// lookup finds a command in the table. It remembers the last command that it found.
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
