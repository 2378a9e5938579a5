package server

import (
	"crypto/rand"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

const (
	// genPassBits is how long a password of ACL GENPASS is unless told, genPassMost at
	// most: Redis' numbers.
	genPassBits = 256
	genPassMost = 4096
)

// aclCommand shows who may do what. It changes nothing: users are changed in their file.
func aclCommand() *command {
	const admin = "admin noscript loading stale"
	return &command{
		name: "ACL", arity: -2, group: groupServer, flags: "noscript loading stale", summary: "Users and what they may do",
		details: "Users come from the file of `weir serve --users-file`; docs/security.md describes it.",
		subs: []*command{
			{name: "WHOAMI", arity: 2, summary: "The user of this connection", run: func(s *session, _ [][]byte) { s.bulk(s.user.name) }},
			{name: "USERS", arity: 2, flags: admin, summary: "The names of the users", run: runACLUsers},
			{name: "LIST", arity: 2, flags: admin, summary: "The users and their rules; passwords are not shown", run: runACLList},
			{name: "GETUSER", arity: 3, flags: admin, syntax: "user", summary: "The rules of a user", run: runACLGetUser},
			{name: "LOAD", arity: 2, flags: admin + " no_multi", summary: "Read the users file again", run: runACLLoad,
				details: "As SIGHUP. A bad file changes nothing; clients whose user has changed are cut."},
			{name: "CAT", arity: -2, syntax: "[category]", summary: "The categories of commands, or the commands of one", run: runACLCat},
			{name: "GENPASS", arity: -2, syntax: "[bits]", summary: "A random password", run: runACLGenPass,
				reply: "Hexadecimal digits, 256 bits of them unless told otherwise."},
		},
	}
}

func runACLUsers(s *session, _ [][]byte) {
	var names []string
	for _, u := range s.srv.users.Load().list() {
		names = append(names, u.name)
	}
	s.strings(names)
}

func runACLList(s *session, _ [][]byte) {
	var lines []string
	for _, u := range s.srv.users.Load().list() {
		lines = append(lines, strings.Join(slices.Concat([]string{"user", u.name}, u.flags(), u.rules), " "))
	}
	s.strings(lines)
}

func runACLGetUser(s *session, args [][]byte) {
	u := s.srv.users.Load().get(string(args[2]))
	if u == nil {
		s.null()
		return
	}
	s.mapOf(6)
	s.bulk("flags")
	flags := u.flags()
	s.setOf(len(flags))
	for _, f := range flags {
		s.bulk(f)
	}
	s.bulk("passwords")
	s.array(0)
	s.pair("commands", u.rulesOn(false))
	s.pair("keys", u.rulesOn(true))
	s.pair("channels", "&*")
	s.bulk("selectors")
	s.array(0)
}

func runACLLoad(s *session, _ [][]byte) {
	if s.srv.cfg.LoadUsers == nil {
		s.fail(errNoUsersFile)
		return
	}
	if err := s.srv.ReloadUsers(); err != nil {
		s.fail(replyError("ERR " + printable([]byte(err.Error()), maxErrorBytes)))
		return
	}
	s.ok()
}

// maxErrorBytes is room for where the mistake in a file is, and what it is.
const maxErrorBytes = 512

func runACLGenPass(s *session, args [][]byte) {
	bits := int64(genPassBits)
	if len(args) > 2 {
		var err error
		if bits, err = unitsArg("bits", args[2], 1, genPassMost); !s.guarded(err) {
			return
		}
	}
	random := make([]byte, (bits+7)/8)
	_, _ = rand.Read(random) // never fails
	s.bulk(hex.EncodeToString(random)[:(bits+3)/4])
}

func runACLCat(s *session, args [][]byte) {
	if len(args) > 3 {
		s.fail(wrongArity(s.srv.state.table.find(args[0]).sub(args[1])))
		return
	}
	byCategory := make(map[string][]string)
	s.srv.state.table.each(func(cmd *command) {
		for _, category := range cmd.categories {
			byCategory[category[1:]] = append(byCategory[category[1:]], cmd.full)
		}
	})
	if len(args) == 2 {
		s.strings(slices.Sorted(maps.Keys(byCategory)))
		return
	}
	commands, ok := byCategory[lower(args[2])]
	if !ok {
		s.fail(replyError("ERR Unknown category '" + printable(args[2], maxQuotedBytes) + "': category must be one of ACL CAT"))
		return
	}
	s.strings(commands)
}
