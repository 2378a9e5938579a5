package server

import (
	"strings"
	"time"
)

// killFilter is what CLIENT KILL was told; a client must meet all of it.
type killFilter struct {
	tests []func(*session) bool
	self  bool // the caller too
}

func runClientKill(s *session, args [][]byte) {
	if len(args) == 3 {
		addr := string(args[2])
		if s.kill(killFilter{tests: []func(*session) bool{hasAddr(addr)}, self: true}) == 0 {
			s.fail(errNoSuchClient)
			return
		}
		s.ok()
		return
	}
	filter, err := parseKillFilter(s.srv.users.Load(), args[2:])
	if s.guarded(err) {
		s.int(s.kill(filter))
	}
}

// kill closes the sessions that meet filter and returns how many. The caller's
// own closes after its reply.
func (s *session) kill(filter killFilter) (n int64) {
next:
	for _, c := range s.srv.state.clients.list() {
		for _, test := range filter.tests {
			if !test(c) {
				continue next
			}
		}
		switch {
		case c != s:
			c.client.Kill()
		case filter.self:
			s.closing = true
		default:
			continue
		}
		n++
	}
	return n
}

func hasAddr(addr string) func(*session) bool {
	return func(c *session) bool { return c.about.addr == addr }
}

func parseKillFilter(users *Users, args [][]byte) (filter killFilter, err error) {
	if len(args)%2 != 0 {
		return filter, errSyntax
	}
	for ; len(args) > 0; args = args[2:] {
		test, err := killTest(users, args[0], args[1], &filter.self)
		if err != nil {
			return filter, err
		}
		if test != nil {
			filter.tests = append(filter.tests, test)
		}
	}
	return filter, nil
}

// killTest reads one pair of CLIENT KILL.
func killTest(users *Users, word, value []byte, self *bool) (func(*session) bool, error) {
	text := string(value)
	switch {
	case isWord(word, "ID"):
		id, ok := parseInt(value)
		if !ok || id < 1 {
			return nil, replyError("ERR client-id should be greater than 0: ID must be a whole number, not " + quote(value))
		}
		return func(c *session) bool { return c.about.id == id }, nil
	case isWord(word, "ADDR"):
		return hasAddr(text), nil
	case isWord(word, "LADDR"):
		return func(c *session) bool { return c.about.laddr == text }, nil
	case isWord(word, "TYPE"):
		kind := strings.ToLower(text)
		if !isClientType(kind) {
			return nil, unknownClientType(value)
		}
		return func(c *session) bool { return c.about.kind() == kind }, nil
	case isWord(word, "USER"):
		if users.get(text) == nil {
			return nil, replyError("ERR No such user '" + printable(value, maxQuotedBytes) + "': username must be one of ACL LIST")
		}
		return func(c *session) bool { return c.about.userName() == text }, nil
	case isWord(word, "MAXAGE"):
		seconds, err := unitsArg("MAXAGE", value, 1, 1<<32)
		return func(c *session) bool { return time.Since(c.about.since) >= time.Duration(seconds)*time.Second }, err
	case isWord(word, "SKIPME") && (isWord(value, "YES") || isWord(value, "NO")):
		*self = isWord(value, "NO")
		return nil, nil
	}
	return nil, errSyntax
}
