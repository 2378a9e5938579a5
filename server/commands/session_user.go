package commands

import (
	"time"

	"github.com/weir-project/weir/internal/connlimit"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/service"
)

// begin makes the session one that has just come: the user default where that needs no
// password, else nobody.
func (s *Session) begin() {
	for {
		users := s.srv.Users.Load()
		if s.become(nil); users.Open() {
			s.become(users.Get(acl.DefaultUser))
		}
		if s.srv.Users.Load() == users {
			return
		}
	}
}

// become makes the session that of a user; nil: nobody.
func (s *Session) become(u *acl.User) {
	s.user, s.limits = u, nil
	name := ""
	if u != nil {
		if name = u.Name; u.Limited {
			s.limits = u
		}
	}
	s.about.Update(func(i *service.Client) { i.User = name })
	s.refresh()
}

// login checks a user and password, after a pause where the client's address has failed
// before. Whoever has logged in stays who he was when it fails.
func (s *Session) login(name, password []byte) error {
	from := connlimit.SourceOf(s.client.RemoteAddr())
	if err := s.srv.AwaitLogin(s.srv.Failed.Delay(from, time.Now())); err != nil {
		return err
	}
	for tried := false; ; tried = true {
		users := s.srv.Users.Load()
		u := users.Login(name, password)
		if u == nil {
			if tried { // right a moment ago, and no more
				s.become(nil)
			}
			s.srv.LoginFailed(from)
			return service.ErrWrongPass
		}
		s.become(u)
		if s.srv.Users.Load() == users { // else ReloadUsers may have passed this session by
			return nil
		}
	}
}

// ReloadUsers reads the users again, and cuts the clients whose user has changed: what
// they may do was decided by what no longer holds. After an error nothing has changed.
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
		if name := c.about.UserName(); name != "" && !old.Get(name).Same(users.Get(name)) {
			c.client.Kill()
		}
	}
	return nil
}

// allowed says whether the user may send a command with these arguments. The keys of
// operations are checked when they are planned, all roads to a decision being one there.
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
		if !u.MayUse(args[at]) || !u.MayReach(s.srv.Limiter.Policies(), args[at]) {
			return s.srv.Refused(service.ErrNoKey)
		}
	}
	return nil
}
