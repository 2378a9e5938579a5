package server

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/connlimit"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/resp"
)

// authenticate says who sends credentials, which are an Authorization of HTTP: Basic, or the
// password of the user default as a Bearer token; empty: none. Where that user needs no
// password everybody is he; a user without one (nopass) has proved nothing, whatever the
// credentials say. Guesses are held back as on the other ports, and as there a connection
// that has logged in waits no more.
func (s *service) authenticate(remoteAddr, credentials string, login *loginMemory) (*acl.User, error) {
	users := s.users.Load()
	basic := http.Request{Header: http.Header{"Authorization": {credentials}}}
	name, password, given := basic.BasicAuth()
	if token, is := strings.CutPrefix(credentials, "Bearer "); is {
		name, password, given = "", token, true
	}
	switch {
	case !given && users.Open():
		return users.Get(acl.DefaultUser), nil
	case !given:
		return nil, errNoAuth
	}
	if name == "" {
		name = acl.DefaultUser
	}
	from := connlimit.SourceOf(remoteAddr)
	if !login.recalls(credentials) {
		if err := s.awaitLogin(s.failed.Delay(from, time.Now())); err != nil {
			return nil, err
		}
	}
	u := users.Login([]byte(name), []byte(password))
	if u == nil {
		s.loginFailed(from)
		return nil, errWrongPass
	}
	login.remember(credentials)
	return u, nil
}

// loginFailed notes a wrong name or password.
func (s *service) loginFailed(from netip.Addr) {
	if s.failed.Note(from, time.Now()) {
		s.stats.lockouts.Add(1)
		s.log.Warn("too many failed logins: those from this address are held back from now on", "source", from)
	}
	s.stats.authFailures.Add(1)
}

// awaitLogin holds a login back for as long as FailedLogins says.
func (s *service) awaitLogin(wait time.Duration, ok bool) error {
	if wait > 0 {
		s.stats.authWaits.Add(1)
	}
	if !ok {
		return errLoginsWait
	}
	if wait > 0 {
		s.sleep(wait)
	}
	return nil
}

// mayInspectAll says whether the user may look at any key.
func (s *service) mayInspectAll(u *acl.User) bool {
	return !u.Limited || u.AllKeys && u.MayCall(s.inspect.slot)
}

// mayCheck refuses, and counts, an operation that the user may not send by RL.CHECK.
func (s *service) mayCheck(u *acl.User, op *engine.Op) error {
	switch {
	case !u.Limited:
		return nil
	case !u.MayCall(s.check.slot):
		return s.refused(notPermitted(u, s.check))
	case !u.MayUse(op.Key):
		return s.refused(errNoKey)
	}
	return nil
}

// notPermitted refuses a command.
func notPermitted(u *acl.User, cmd *commandInfo) error {
	return resp.Error("NOPERM User " + u.Name + " has no permissions to run the '" + cmd.full + "' command")
}

// refused counts a refusal.
func (s *service) refused(err error) error {
	s.stats.noPermission.Add(1)
	return err
}

// protects says whether protected mode keeps a client out.
func (s *service) protects(nc net.Conn) bool {
	return s.protectedMode && s.users.Load().Open() && !isLocal(nc.RemoteAddr())
}

// isLocal says whether a client is on this machine.
func isLocal(addr net.Addr) bool {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		return tcp.IP.IsLoopback()
	}
	return addr.Network() == "unix"
}
