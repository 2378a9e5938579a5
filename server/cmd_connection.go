package server

import "strconv"

func connectionCommands() []*command {
	commands := []*command{
		{name: "PING", arity: -1, syntax: "[message]", summary: "Answers PONG, or the message", flags: "fast", run: runPing, pubsub: true, instant: true},
		{name: "ECHO", arity: 2, syntax: "message", summary: "Answers the message", flags: "fast loading stale",
			run: func(s *session, args [][]byte) { s.bulkBytes(args[1]) }, instant: true},
		{name: "HELLO", arity: -1, syntax: "[2|3] [AUTH user password] [SETNAME name]", summary: "Choose the protocol and log in",
			reply: "A map that describes the server.",
			flags: "noscript loading stale fast no_auth no_multi", run: runHello, commandInfo: commandInfo{secret: true}},
		{name: "AUTH", arity: -2, syntax: "[user] password", summary: "Log in, as the user default unless one is named",
			flags: "noscript loading stale fast no_auth no_multi", run: runAuth, commandInfo: commandInfo{secret: true}},
		{name: "SELECT", arity: 2, syntax: "0", summary: "Select the only database, 0", flags: "fast loading stale", run: runSelect},
		{name: "QUIT", arity: -1, summary: "Close the connection", flags: "noscript loading stale fast no_auth", run: runQuit, atOnce: true, pubsub: true},
		{name: "RESET", arity: 1, summary: "Put the connection back to its beginning", flags: "noscript loading stale fast no_auth", run: runReset, atOnce: true, pubsub: true,
			details: "Ends a transaction, subscriptions, MONITOR and READONLY, goes back to RESP2 and logs out. Limiters are reset with RL.RESET."},
	}
	for _, cmd := range commands {
		cmd.group, cmd.exempt = groupConn, true
	}
	return commands
}

func runPing(s *session, args [][]byte) {
	switch {
	case len(args) > 2:
		s.fail(wrongArity(s.srv.state.table.find([]byte("PING"))))
	case s.onlyTopics():
		s.array(2)
		s.bulk("pong")
		if len(args) == 2 {
			s.bulkBytes(args[1])
		} else {
			s.bulk("")
		}
	case len(args) == 2:
		s.bulkBytes(args[1])
	default:
		s.simple("PONG")
	}
}

func runAuth(s *session, args [][]byte) {
	user, password := []byte(defaultUser), args[len(args)-1]
	switch {
	case len(args) > 3:
		s.fail(errSyntax)
		return
	case len(args) == 3:
		user = args[1]
	case s.srv.users.Load().open():
		s.fail(errNoPassword)
		return
	}
	if s.guarded(s.login(user, password)) {
		s.ok()
	}
}

// runHello changes nothing unless all of its arguments are right.
func runHello(s *session, args [][]byte) {
	proto, rest := s.proto, args[1:]
	if len(rest) > 0 {
		n, ok := parseInt(rest[0])
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
		case isWord(rest[0], "AUTH") && len(rest) >= 3:
			user, password, rest = rest[1], rest[2], rest[3:]
		case isWord(rest[0], "SETNAME") && len(rest) >= 2:
			name, rest = rest[1], rest[2:]
			if !s.guarded(checkClientText("Client names", name)) {
				return
			}
		default:
			s.fail(replyError("ERR Syntax error in HELLO option '" + printable(rest[0], maxQuotedBytes) + "': option must be AUTH username password or SETNAME name"))
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
	s.speak(proto)
	if name != nil {
		s.about.update(func(i *clientInfo) { i.name = string(name) })
	}
	s.introduce()
}

// speak changes the protocol of the replies.
func (s *session) speak(proto int) {
	s.proto = proto
	s.about.update(func(i *clientInfo) { i.proto = proto })
	s.refresh()
}

func (s *session) introduce() {
	s.mapOf(7)
	s.pair("server", "redis")
	s.pair("version", redisVersion)
	s.pairInt("proto", int64(s.proto))
	s.pairInt("id", s.about.id)
	s.pair("mode", s.srv.mode())
	s.pair("role", s.srv.helloRole())
	s.bulk("modules")
	s.array(0)
}

func runSelect(s *session, args [][]byte) {
	switch n, ok := parseInt(args[1]); {
	case !ok:
		s.fail(notInteger("db", "must be 0", args[1]))
	case n != 0:
		s.fail(errDBIndex)
	default:
		s.ok()
	}
}

func runQuit(s *session, _ [][]byte) {
	s.ok()
	s.closing = true
}

func runReset(s *session, _ [][]byte) {
	s.endTransaction()
	s.setMonitor(false)
	s.dropTopics()
	s.mute = muteNone
	s.setReadonly(false)
	s.begin()
	s.about.update(func(i *clientInfo) { i.name = "" })
	s.speak(2)
	s.simple("RESET")
}

// checkClientText checks whether CLIENT LIST can show b on its line.
func checkClientText(what string, b []byte) error {
	if len(b) > maxClientTextBytes {
		return replyError("ERR " + what + " must be at most " + strconv.Itoa(maxClientTextBytes) + " bytes, not " + strconv.Itoa(len(b)))
	}
	for _, c := range b {
		if c < '!' || c > '~' {
			return replyError("ERR " + what + " cannot contain spaces, newlines or special characters.")
		}
	}
	return nil
}
