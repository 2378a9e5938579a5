package commands

import (
	"strings"
	"time"

	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
)

// killFilter is what CLIENT KILL was told; a client must meet all of it.
type killFilter struct {
	tests []func(*Session) bool
	self  bool // the caller too
}

func runClientKill(s *Session, args [][]byte) {
	if len(args) == 3 {
		addr := string(args[2])
		if s.kill(killFilter{tests: []func(*Session) bool{hasAddr(addr)}, self: true}) == 0 {
			s.fail(errNoSuchClient)
			return
		}
		s.OK()
		return
	}
	filter, err := parseKillFilter(s.srv.Users.Load(), args[2:])
	if s.guarded(err) {
		s.Int(s.kill(filter))
	}
}

// kill closes the sessions that meet filter and returns how many. The caller's
// own closes after its reply.
func (s *Session) kill(filter killFilter) (n int64) {
next:
	for _, c := range s.srv.clients.list() {
		for _, test := range filter.tests {
			if !test(c) {
				continue next
			}
		}
		switch {
		case c != s:
			c.client.Kill()
		case filter.self:
			s.Closing = true
		default:
			continue
		}
		n++
	}
	return n
}

func hasAddr(addr string) func(*Session) bool {
	return func(c *Session) bool { return c.about.Addr == addr }
}

func parseKillFilter(users *acl.Users, args [][]byte) (filter killFilter, err error) {
	if len(args)%2 != 0 {
		return filter, arg.ErrSyntax
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
func killTest(users *acl.Users, word, value []byte, self *bool) (func(*Session) bool, error) {
	text := string(value)
	switch {
	case arg.Is(word, "ID"):
		id, ok := arg.Int(value)
		if !ok || id < 1 {
			return nil, resp.Error("ERR client-id should be greater than 0: ID must be a whole number, not " + resp.Quote(value))
		}
		return func(c *Session) bool { return c.about.ID == id }, nil
	case arg.Is(word, "ADDR"):
		return hasAddr(text), nil
	case arg.Is(word, "LADDR"):
		return func(c *Session) bool { return c.about.LocalAddr == text }, nil
	case arg.Is(word, "TYPE"):
		kind := strings.ToLower(text)
		if !isClientType(kind) {
			return nil, unknownClientType(value)
		}
		return func(c *Session) bool { return c.about.Kind() == kind }, nil
	case arg.Is(word, "USER"):
		if users.Get(text) == nil {
			return nil, resp.Error("ERR No such user '" + resp.Printable(value, resp.MaxQuotedBytes) + "': username must be one of ACL LIST")
		}
		return func(c *Session) bool { return c.about.UserName() == text }, nil
	case arg.Is(word, "MAXAGE"):
		seconds, err := arg.Units("MAXAGE", value, 1, 1<<32)
		return func(c *Session) bool { return time.Since(c.about.Since) >= time.Duration(seconds)*time.Second }, err
	case arg.Is(word, "SKIPME") && (arg.Is(value, "YES") || arg.Is(value, "NO")):
		*self = arg.Is(value, "NO")
		return nil, nil
	}
	return nil, arg.ErrSyntax
}
