package commands

import (
	"strings"
	"time"

	"github.com/weir-project/weir/internal/millis"
	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

func clientCommand() *command {
	ok := func(s *Session, _ [][]byte) { s.OK() }
	return &command{
		name: "CLIENT", arity: -2, group: groupConn, flags: "noscript loading stale",
		Command: service.Command{Exempt: true},
		summary: "Information about this connection and the others",
		subs: []*command{
			{name: "ID", arity: 2, summary: "The id of this connection",
				run: func(s *Session, _ [][]byte) { s.Int(s.about.ID) }},
			{name: "GETNAME", arity: 2, summary: "The name of this connection", run: runGetName},
			{name: "SETNAME", arity: 3, syntax: "name", summary: "Name this connection", run: runSetName},
			{name: "SETINFO", arity: 4, syntax: "LIB-NAME|LIB-VER value", summary: "Set the name and version of the " +
				"client library",
				run: runSetInfo},
			{name: "LIST", arity: -2, syntax: "[TYPE type] [ID id ...]", summary: "Describe all connections",
				flags: "admin", run: runClientList, bulky: true},
			{name: "INFO", arity: 2, summary: "Describe this connection",
				run: func(s *Session, _ [][]byte) { s.Verbatim(s.about.Line(time.Now())) }},
			{name: "KILL", arity: -3, flags: "admin no_multi", summary: "Close connections",
				syntax: "[address] [ID id] [TYPE type] [USER user] [ADDR address] [LADDR address] [SKIPME YES|NO] " +
					"[MAXAGE seconds]",
				reply: "OK for an address alone, else how many were closed.", run: runClientKill},
			{name: "REPLY", arity: 3, flags: "no_multi", syntax: "ON|OFF|SKIP",
				summary: "Send replies, none, or not the next", run: runClientReply},
			{name: "PAUSE", arity: -3, flags: "admin no_multi", syntax: "ms [WRITE|ALL]",
				summary: "Delay commands for a while", run: runClientPause},
			{name: "UNPAUSE", arity: 2, flags: "admin", summary: "End CLIENT PAUSE", run: func(s *Session, _ [][]byte) {
				s.srv.Pause.End()
				s.OK()
			}},
			{name: "NO-EVICT", arity: 3, syntax: "ON|OFF", summary: "Protect this client from eviction",
				run: runOnOff, noEffect: "no connection is closed to free memory"},
			{name: "NO-TOUCH", arity: 3, syntax: "ON|OFF", summary: "Whether reads change the age of keys",
				run: runOnOff, noEffect: "they never do"},
			{name: "CAPA", arity: -3, syntax: "capability [capability ...]", summary: "What this client understands",
				run: ok, noEffect: "weir sends no reply that needs one"},
			{name: "TRACKING", arity: -3,
				syntax:  "ON|OFF [OPTIN] [OPTOUT] [BCAST] [PREFIX prefix] [REDIRECT id] [NOLOOP]",
				summary: "Refused, besides OFF and ON OPTIN", run: runTracking, noEffect: "after `ON OPTIN` nothing is " +
					"cached without `CLIENT CACHING YES`, which is refused"},
			{name: "TRACKINGINFO", arity: 2, summary: "Tracking is off", run: runTrackingInfo},
			{name: "GETREDIR", arity: 2, summary: "Always -1: tracking is off",
				run: func(s *Session, _ [][]byte) { s.Int(-1) }},
			{name: "CACHING", arity: 3, syntax: "YES|NO", summary: "Refused: decisions must not be cached",
				run: func(s *Session, _ [][]byte) { s.fail(errCaching) }},
		},
	}
}

func runGetName(s *Session, _ [][]byte) {
	if name := s.about.ClientName(); name != "" {
		s.Bulk(name)
		return
	}
	s.Null()
}

func runSetName(s *Session, args [][]byte) {
	if !s.guarded(checkClientText("Client names", args[2])) {
		return
	}
	s.about.Update(func(i *service.Client) { i.Name = string(args[2]) })
	s.OK()
}

func runSetInfo(s *Session, args [][]byte) {
	attr := strings.ToLower(string(args[2]))
	if attr != "lib-name" && attr != "lib-ver" {
		s.fail(resp.Error("ERR Unrecognized option '" + quote.Printable(args[2], quote.MaxBytes) +
			"': attribute must be LIB-NAME or LIB-VER"))
		return
	}
	if !s.guarded(checkClientText(attr, args[3])) {
		return
	}
	s.about.Update(func(i *service.Client) {
		if attr == "lib-name" {
			i.LibName = string(args[3])
		} else {
			i.LibVer = string(args[3])
		}
	})
	s.OK()
}

func runClientList(s *Session, args [][]byte) {
	keep := func(*Session) bool { return true }
	switch {
	case len(args) == 2:
	case len(args) == 4 && limits.Is(args[2], "TYPE"):
		kind := strings.ToLower(string(args[3]))
		if !isClientType(kind) {
			s.fail(unknownClientType(args[3]))
			return
		}
		keep = func(c *Session) bool { return c.about.Kind() == kind }
	case len(args) >= 4 && limits.Is(args[2], "ID"):
		ids := make(map[int64]bool)
		for _, a := range args[3:] {
			id, ok := limits.Int(a)
			if !ok || id < 1 {
				s.fail(resp.Error("ERR Invalid client ID: id must be a whole number from 1, not " + quote.Text(a)))
				return
			}
			ids[id] = true
		}
		keep = func(c *Session) bool { return ids[c.about.ID] }
	default:
		s.fail(arg.ErrSyntax)
		return
	}
	var text strings.Builder
	now := time.Now()
	for _, c := range s.srv.clients.list() {
		if keep(c) {
			text.WriteString(c.about.Line(now))
		}
	}
	s.Verbatim(text.String())
}

func isClientType(kind string) bool {
	switch kind {
	case "normal", "master", "replica", "slave", "pubsub":
		return true
	}
	return false
}

func unknownClientType(got []byte) error {
	return resp.Error("ERR Unknown client type '" + quote.Printable(got, quote.MaxBytes) +
		"': type must be normal, master, replica, slave or pubsub")
}

func runClientReply(s *Session, args [][]byte) {
	switch {
	case limits.Is(args[2], "ON"):
		s.Mute = MuteNone
		s.OK()
	case limits.Is(args[2], "OFF"):
		s.Mute = muteAll
	case limits.Is(args[2], "SKIP"):
		if s.Mute == MuteNone {
			s.Mute = muteNext
		}
	default:
		s.fail(arg.ErrSyntax)
	}
	s.refresh()
}

func runClientPause(s *Session, args [][]byte) {
	ms, err := limits.Units("timeout", args[2], 0, service.MaxPauseMs)
	if !s.guarded(err) {
		return
	}
	writes := len(args) == 4 && limits.Is(args[3], "WRITE")
	if len(args) > 4 || len(args) == 4 && !writes && !limits.Is(args[3], "ALL") {
		s.fail(arg.ErrSyntax)
		return
	}
	s.srv.Pause.Begin(millis.Duration(ms), writes)
	s.OK()
}

// runTracking accepts what makes a client cache nothing, and refuses the rest, because weir sends no invalidations.
func runTracking(s *Session, args [][]byte) {
	on, optIn, broadcast := limits.Is(args[2], "ON"), false, false
	valid := on || limits.Is(args[2], "OFF")
	for rest := args[3:]; valid && len(rest) > 0; {
		used := 1
		switch word := rest[0]; {
		case limits.Is(word, "OPTIN"):
			optIn = true
		case limits.Is(word, "BCAST"):
			broadcast = true
		case limits.Is(word, "OPTOUT"), limits.Is(word, "NOLOOP"):
		case limits.Is(word, "PREFIX") && len(rest) > 1, limits.Is(word, "REDIRECT") && len(rest) > 1:
			used = 2
		default:
			valid = false
		}
		rest = rest[used:]
	}
	switch {
	case !valid:
		s.fail(arg.ErrSyntax)
	case on && (broadcast || !optIn):
		s.fail(errTracking)
	default:
		s.OK()
	}
}

func runTrackingInfo(s *Session, _ [][]byte) {
	s.Map(3)
	s.Bulk("flags")
	s.Set(1)
	s.Bulk("off")
	s.PairInt("redirect", -1)
	s.Bulk("prefixes")
	s.Array(0)
}

// runOnOff accepts ON or OFF and ignores it.
func runOnOff(s *Session, args [][]byte) {
	if !limits.Is(args[2], "ON") && !limits.Is(args[2], "OFF") {
		s.fail(arg.ErrSyntax)
		return
	}
	s.OK()
}

// killFilter holds the conditions of CLIENT KILL. A client must meet all of them.
type killFilter struct {
	tests []func(*Session) bool
	self  bool // also the calling session
}

func runClientKill(s *Session, args [][]byte) {
	if len(args) == 3 {
		addr := string(args[2])
		if killClients(s, killFilter{tests: []func(*Session) bool{hasAddr(addr)}, self: true}) == 0 {
			s.fail(errNoSuchClient)
			return
		}
		s.OK()
		return
	}
	filter, err := parseKillFilter(s.srv.Users.Load(), args[2:])
	if s.guarded(err) {
		s.Int(killClients(s, filter))
	}
}

// killClients closes the sessions that meet filter, and returns how many. It closes the calling session after its
// reply.
func killClients(s *Session, filter killFilter) (n int64) {
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

// killTest reads one option of CLIENT KILL and its value. It returns the condition that a client must meet. For SKIPME
// it sets self and returns nil.
func killTest(users *acl.Users, word, value []byte, self *bool) (func(*Session) bool, error) {
	text := string(value)
	switch {
	case limits.Is(word, "ID"):
		id, ok := limits.Int(value)
		if !ok || id < 1 {
			return nil, resp.Error("ERR client-id should be greater than 0: ID must be a whole number, not " +
				quote.Text(value))
		}
		return func(c *Session) bool { return c.about.ID == id }, nil
	case limits.Is(word, "ADDR"):
		return hasAddr(text), nil
	case limits.Is(word, "LADDR"):
		return func(c *Session) bool { return c.about.LocalAddr == text }, nil
	case limits.Is(word, "TYPE"):
		kind := strings.ToLower(text)
		if !isClientType(kind) {
			return nil, unknownClientType(value)
		}
		return func(c *Session) bool { return c.about.Kind() == kind }, nil
	case limits.Is(word, "USER"):
		if users.Get(text) == nil {
			return nil, resp.Error("ERR No such user '" + quote.Printable(value, quote.MaxBytes) +
				"': username must be one of ACL LIST")
		}
		return func(c *Session) bool { return c.about.UserName() == text }, nil
	case limits.Is(word, "MAXAGE"):
		seconds, err := limits.Units("MAXAGE", value, 1, 1<<32)
		return func(c *Session) bool { return time.Since(c.about.Since) >= time.Duration(seconds)*time.Second }, err
	case limits.Is(word, "SKIPME") && (limits.Is(value, "YES") || limits.Is(value, "NO")):
		*self = limits.Is(value, "NO")
		return nil, nil
	}
	return nil, arg.ErrSyntax
}
