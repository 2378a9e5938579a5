package commands

import (
	"strconv"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/info"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

func connectionCommands() []*command {
	commands := []*command{
		{name: "PING", arity: -1, syntax: "[message]", summary: "Answers PONG, or the message", flags: "fast",
			run: runPing, pubsub: true, instant: true},
		{name: "ECHO", arity: 2, syntax: "message", summary: "Answers the message", flags: "fast loading stale",
			run: func(s *Session, args [][]byte) { s.BulkBytes(args[1]) }, instant: true},
		{name: "HELLO", arity: -1, syntax: "[2|3] [AUTH user password] [SETNAME name]",
			summary: "Choose the protocol and log in",
			reply:   "A map that describes the server.",
			flags:   "noscript loading stale fast no_auth no_multi", run: runHello,
			Command: service.Command{Secret: true}},
		{name: "AUTH", arity: -2, syntax: "[user] password", summary: "Log in, as the user default unless one is named",
			flags: "noscript loading stale fast no_auth no_multi", run: runAuth,
			Command: service.Command{Secret: true}},
		{name: "SELECT", arity: 2, syntax: "index", summary: "Select a database, 0 to 15", flags: "fast loading stale",
			run: runSelect, params: []param{{"index", "0 to 15; a new connection, and one after `RESET`, is in 0"}},
			details: "Limiters, usage of policies, strings, holds, and blocks of a key are of one database. Policies " +
				"with their overrides, users, and blocks `EVERYWHERE` are common; such a block is made and lifted in " +
				"database 0, and so is the set of blocked addresses. In another database a key has at most 507 " +
				"bytes, and the id of a hold 59. HTTP and gRPC use database 0. `SWAPDB`, `MOVE` and `COPY` are refused.",
			reply: "OK. In a cluster an error, for 1 to 15, while some node may not know databases."},
		{name: "QUIT", arity: -1, summary: "Close the connection", flags: "noscript loading stale fast no_auth",
			run: runQuit, atOnce: true, pubsub: true},
		{name: "RESET", arity: 1, summary: "Reset the state of the connection",
			flags: "noscript loading stale fast no_auth", run: runReset, atOnce: true, pubsub: true,
			details: "Ends a transaction, subscriptions, MONITOR and READONLY, returns to RESP2 and logs out. " +
				"Limiters are reset with RL.RESET."},
	}
	for _, cmd := range commands {
		cmd.group, cmd.Exempt = groupConn, true
	}
	return commands
}

func runPing(s *Session, args [][]byte) {
	switch {
	case len(args) > 2:
		s.fail(wrongArity(s.srv.table.find([]byte("PING"))))
	case s.onlyTopics():
		s.Array(2)
		s.Bulk("pong")
		if len(args) == 2 {
			s.BulkBytes(args[1])
		} else {
			s.Bulk("")
		}
	case len(args) == 2:
		s.BulkBytes(args[1])
	default:
		s.Simple("PONG")
	}
}

func runAuth(s *Session, args [][]byte) {
	user, password := []byte(acl.DefaultUser), args[len(args)-1]
	switch {
	case len(args) > 3:
		s.fail(arg.ErrSyntax)
		return
	case len(args) == 3:
		user = args[1]
	case s.srv.Users.Load().Open():
		s.fail(errNoPassword)
		return
	}
	if s.guarded(s.login(user, password)) {
		s.OK()
	}
}

// runHello changes nothing unless all of its arguments are valid.
func runHello(s *Session, args [][]byte) {
	proto, rest := s.about.Protocol(), args[1:]
	if len(rest) > 0 {
		n, ok := limits.Int(rest[0])
		switch {
		case !ok:
			s.fail(errProtoInteger)
			return
		case n != 2 && n != 3:
			s.fail(errNoProto)
			return
		}
		proto, rest = int(n), rest[1:]
	}
	var user, password, name []byte
	for len(rest) > 0 {
		switch {
		case limits.Is(rest[0], "AUTH") && len(rest) >= 3:
			user, password, rest = rest[1], rest[2], rest[3:]
		case limits.Is(rest[0], "SETNAME") && len(rest) >= 2:
			name, rest = rest[1], rest[2:]
			if !s.guarded(checkClientText("Client names", name)) {
				return
			}
		default:
			const accepted = "option must be AUTH username password or SETNAME name"
			s.fail(lacks(service.LacksOption, resp.Error("ERR Syntax error in HELLO option '"+
				quote.Printable(rest[0], quote.MaxBytes)+"': "+accepted), accepted))
			return
		}
	}
	if user != nil && !s.guarded(s.login(user, password)) {
		return
	}
	if s.user == nil {
		s.fail(errHelloNoAuth)
		return
	}
	speak(s, proto)
	if name != nil {
		s.about.Update(func(i *service.Client) { i.Name = string(name) })
	}
	writeGreeting(s)
}

// speak changes the protocol of the replies.
func speak(s *Session, proto int) {
	s.Speak(proto)
	s.about.Update(func(i *service.Client) { i.Proto = proto })
	s.refresh()
}

func writeGreeting(s *Session) {
	s.Map(7)
	s.Pair("server", "redis")
	s.Pair("version", info.RedisVersion)
	s.PairInt("proto", int64(s.about.Protocol()))
	s.PairInt("id", s.about.ID)
	s.Pair("mode", info.Mode(s.srv.Service))
	s.Pair("role", info.Role(s.srv.Service))
	s.Bulk("modules")
	s.Array(0)
}

func runSelect(s *Session, args [][]byte) {
	if n, err := databaseArg(s.srv, args[1]); s.guarded(err) {
		s.selectDatabase(n)
		s.OK()
	}
}

// databaseArg reads the index of a database that may be selected now.
func databaseArg(srv *Shared, b []byte) (uint8, error) {
	n, ok := limits.Int(b)
	switch {
	case !ok:
		return 0, arg.NotInteger("index", "must be 0 to 15", b)
	case n < 0 || n >= engine.Databases:
		return 0, errDBIndex
	case n > 0 && srv.Replica != nil && srv.Replica.Topology().Format < limiter.DatabasesFormat:
		return 0, limiter.ErrOldMember
	}
	return uint8(n), nil
}

// selectDatabase makes a database the one of the commands that follow.
func (s *Session) selectDatabase(n uint8) {
	s.database, s.reads.Database = n, int(n)
	s.about.Update(func(i *service.Client) { i.DB = int(n) })
}

func runQuit(s *Session, _ [][]byte) {
	s.OK()
	s.Closing = true
}

func runReset(s *Session, _ [][]byte) {
	s.endTransaction()
	setMonitor(s, false)
	s.dropTopics()
	s.Mute = MuteNone
	s.setReadonly(false)
	s.selectDatabase(0)
	s.begin()
	s.about.Update(func(i *service.Client) { i.Name = "" })
	speak(s, 2)
	s.Simple("RESET")
}

// checkClientText checks whether CLIENT LIST can show b on its line.
func checkClientText(what string, b []byte) error {
	if len(b) > maxClientTextBytes {
		return resp.Error("ERR " + what + " must be at most " + strconv.Itoa(maxClientTextBytes) + " bytes, not " +
			strconv.Itoa(len(b)))
	}
	for _, c := range b {
		if c < '!' || c > '~' {
			return resp.Error("ERR " + what + " cannot contain spaces, newlines or special characters.")
		}
	}
	return nil
}
