package commands

import (
	"crypto/rand"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-project/weir/internal/connlimit"
	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

const (
	// genPassBits is the default length of a password of ACL GENPASS in bits, and genPassMost the maximum. Both are
	// Redis' numbers.
	genPassBits = 256
	genPassMost = 4096
)

// aclCommand shows users and their permissions. It changes nothing: users are changed in their file.
func aclCommand() *command {
	const admin = "admin noscript loading stale"
	return &command{
		name: "ACL", arity: -2, group: groupServer, flags: "noscript loading stale",
		summary: "Users and what they may do",
		details: "Users come from the file of `weir serve --users-file`; docs/security.md describes it.",
		subs: []*command{
			{name: "WHOAMI", arity: 2, summary: "The user of this connection",
				run: func(s *Session, _ [][]byte) { s.Bulk(s.user.Name) }},
			{name: "USERS", arity: 2, flags: admin, summary: "The names of the users", run: runACLUsers},
			{name: "LIST", arity: 2, flags: admin, summary: "The users and their rules; passwords are not shown",
				run: runACLList},
			{name: "GETUSER", arity: 3, flags: admin, syntax: "user", summary: "The rules of a user",
				run: runACLGetUser},
			{name: "LOAD", arity: 2, flags: admin + " no_multi", summary: "Read the users file again", run: runACLLoad,
				details: "As SIGHUP. A bad file changes nothing; clients whose user has changed are cut."},
			{name: "CAT", arity: -2, syntax: "[category]",
				summary: "The categories of commands, or the commands of one", run: runACLCat},
			{name: "GENPASS", arity: -2, syntax: "[bits]", summary: "A random password", run: runACLGenPass,
				reply: "Hexadecimal digits, 256 bits of them unless told otherwise."},
		},
	}
}

func runACLUsers(s *Session, _ [][]byte) {
	var names []string
	for _, u := range s.srv.Users.Load().List() {
		names = append(names, u.Name)
	}
	s.Strings(names)
}

func runACLList(s *Session, _ [][]byte) {
	var lines []string
	for _, u := range s.srv.Users.Load().List() {
		lines = append(lines, strings.Join(slices.Concat([]string{"user", u.Name}, u.Flags(), u.Rules), " "))
	}
	s.Strings(lines)
}

func runACLGetUser(s *Session, args [][]byte) {
	u := s.srv.Users.Load().Get(string(args[2]))
	if u == nil {
		s.Null()
		return
	}
	s.Map(6)
	s.Bulk("flags")
	flags := u.Flags()
	s.Set(len(flags))
	for _, f := range flags {
		s.Bulk(f)
	}
	s.Bulk("passwords")
	s.Array(0)
	s.Pair("commands", u.RulesOn(false))
	s.Pair("keys", u.RulesOn(true))
	s.Pair("channels", "&*")
	s.Bulk("selectors")
	s.Array(0)
}

func runACLLoad(s *Session, _ [][]byte) {
	if s.srv.cfg.LoadUsers == nil {
		s.fail(errNoUsersFile)
		return
	}
	if err := s.srv.ReloadUsers(); err != nil {
		s.fail(resp.Error("ERR " + quote.Printable([]byte(err.Error()), maxErrorBytes)))
		return
	}
	s.OK()
}

// maxErrorBytes bounds the text about a mistake in a users file in a reply.
const maxErrorBytes = 512

func runACLGenPass(s *Session, args [][]byte) {
	bits := int64(genPassBits)
	if len(args) > 2 {
		var err error
		if bits, err = limits.Units("bits", args[2], 1, genPassMost); !s.guarded(err) {
			return
		}
	}
	random := make([]byte, (bits+7)/8)
	_, _ = rand.Read(random) // never fails
	s.Bulk(hex.EncodeToString(random)[:(bits+3)/4])
}

func runACLCat(s *Session, args [][]byte) {
	if len(args) > 3 {
		s.fail(wrongArity(s.srv.table.find(args[0]).sub(args[1])))
		return
	}
	byCategory := make(map[string][]string)
	s.srv.table.each(func(cmd *command) {
		for _, category := range cmd.categories {
			byCategory[category[1:]] = append(byCategory[category[1:]], cmd.Full)
		}
	})
	if len(args) == 2 {
		s.Strings(slices.Sorted(maps.Keys(byCategory)))
		return
	}
	commands, ok := byCategory[lower(args[2])]
	if !ok {
		s.fail(resp.Error("ERR Unknown category '" + quote.Printable(args[2], quote.MaxBytes) +
			"': category must be one of ACL CAT"))
		return
	}
	s.Strings(commands)
}

// begin gives a new session its user: the user of its certificate, the user default if that needs no password, else no
// user. It begins again if
// ReloadUsers has replaced the users meanwhile, because ReloadUsers may have missed this session.
func (s *Session) begin() {
	for {
		users := s.srv.Users.Load()
		s.become(nil)
		if u := users.OfCertificate(s.client.Certificate()); u != nil {
			s.become(u)
		} else if users.Open() {
			s.become(users.Get(acl.DefaultUser))
		}
		if s.srv.Users.Load() == users {
			return
		}
	}
}

// become makes u the user of the session. A nil u logs the session out.
func (s *Session) become(u *acl.User) {
	if authed := u != nil; authed != (s.user != nil) {
		s.client.SetAuthed(authed)
	}
	s.user, s.limits = u, nil
	name := ""
	if u != nil {
		if name = u.Name; u.Limited {
			s.limits = u
		}
	}
	s.hears.Store(s.limits)
	s.about.Update(func(i *service.Client) { i.User = name })
	s.refresh()
}

// login checks a user and password. It waits first if the client's address has failed before. A failed login leaves the
// current user of the session logged in.
func (s *Session) login(name, password []byte) error {
	from := connlimit.SourceOf(s.client.RemoteAddr())
	if err := s.srv.AwaitLogin(s.srv.Failed.Delay(from, time.Now())); err != nil {
		return err
	}
	for tried := false; ; tried = true {
		users := s.srv.Users.Load()
		u := users.Login(name, password)
		if u == nil {
			if tried { // the first attempt succeeded, but the password has changed since
				s.become(nil)
			}
			s.srv.LoginFailed(from)
			return service.ErrWrongPass
		}
		s.become(u)
		if s.srv.Users.Load() == users { // otherwise ReloadUsers may have missed this session
			return nil
		}
	}
}

// ReloadUsers reads the users again, and disconnects the clients whose user has changed, because their permissions no
// longer hold. After an error nothing has changed.
func (s *Shared) ReloadUsers() error {
	var file *acl.Users
	if s.cfg.LoadUsers != nil {
		var err error
		if file, err = s.cfg.LoadUsers(); err != nil {
			return err
		}
	}
	users, err := acl.WithDefault(file, s.cfg.Password)
	if err != nil {
		return err
	}
	old := s.Users.Swap(users)
	for _, c := range s.clients.list() {
		cert, name := c.client.Certificate(), c.about.UserName()
		if name != "" && !old.Get(name).Same(users.Get(name)) ||
			nameOf(old.OfCertificate(cert)) != nameOf(users.OfCertificate(cert)) {
			c.client.Kill()
		}
	}
	return nil
}

// nameOf returns the name of a user, or "" for none.
func nameOf(u *acl.User) string {
	if u == nil {
		return ""
	}
	return u.Name
}

// allowed checks whether the user may send a command with these arguments. It does not check the keys of operations:
// plan does, because every decision passes through plan.
func (s *Session) allowed(cmd *command, args [][]byte) error {
	u := s.limits
	if u == nil {
		return nil
	}
	if !cmd.allowedTo(u) {
		return s.srv.Refused(service.NotPermitted(u, &cmd.Command))
	}
	if cmd.plan != nil {
		return nil
	}
	for _, at := range cmd.keysOf(len(args)) {
		if !u.MayUse(args[at]) || !u.MayReach(s.srv.Here.Policies(), args[at]) {
			return s.srv.Refused(service.ErrNoKey)
		}
	}
	return nil
}
