package service

import (
	"crypto/x509"
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

// Authenticate returns the user whose credentials an HTTP Authorization header carries. They are Basic credentials, or
// the password of the user default as a Bearer token. Without credentials it returns the user of the client's verified
// certificate, which may be nil, or the user default if that user needs no password, else ErrNoAuth. A user without a
// password (nopass) is not authenticated, whatever the credentials. Authenticate delays password guesses as the other
// ports do. A connection that has logged in is not delayed.
func (s *Service) Authenticate(remoteAddr, credentials string, cert *x509.Certificate, login *LoginMemory) (*acl.User,
	error) {
	users := s.Users.Load()
	basic := http.Request{Header: http.Header{"Authorization": {credentials}}}
	name, password, given := basic.BasicAuth()
	if scheme, token, _ := strings.Cut(credentials, " "); strings.EqualFold(scheme, "Bearer") {
		name, password, given = "", token, true
	}
	certified := users.OfCertificate(cert)
	switch {
	case !given && certified != nil:
		return certified, nil
	case !given && users.Open():
		return users.Get(acl.DefaultUser), nil
	case !given:
		return nil, ErrNoAuth
	}
	if name == "" {
		name = acl.DefaultUser
	}
	from := connlimit.SourceOf(remoteAddr)
	if !login.recalls(credentials) {
		if err := s.AwaitLogin(s.Failed.Delay(from, time.Now())); err != nil {
			return nil, err
		}
	}
	u := users.Login([]byte(name), []byte(password))
	if u == nil {
		s.LoginFailed(from)
		return nil, ErrWrongPass
	}
	login.remember(credentials)
	return u, nil
}

// LoginFailed records a wrong name or password.
func (s *Service) LoginFailed(from netip.Addr) {
	if s.Failed.Note(from, time.Now()) {
		s.Stats.Lockouts.Add(1)
		s.Log.Warn("too many failed logins: logins from this address are delayed from now on", "source", from)
	}
	s.Stats.AuthFailures.Add(1)
}

// AwaitLogin delays or refuses a login as FailedLogins requires.
func (s *Service) AwaitLogin(wait time.Duration, ok bool) error {
	if wait > 0 {
		s.Stats.AuthWaits.Add(1)
	}
	if !ok {
		return ErrLoginsWait
	}
	if wait > 0 {
		s.Sleep(wait)
	}
	return nil
}

// MayInspectAll reports whether the user may inspect every key.
func (s *Service) MayInspectAll(u *acl.User) bool {
	return !u.Limited || u.AllKeys && u.MayCall(s.Inspect.Slot)
}

// MayCheck refuses and counts an operation that the user may not send by RL.CHECK.
func (s *Service) MayCheck(u *acl.User, op *engine.Op) error {
	switch {
	case !u.Limited:
		return nil
	case !u.MayCall(s.Check.Slot):
		return s.Refused(NotPermitted(u, s.Check))
	case !u.MayUse(op.Key):
		return s.Refused(ErrNoKey)
	}
	return nil
}

// NotPermitted returns the error reply for a command that the user may not call.
func NotPermitted(u *acl.User, cmd *Command) error {
	return resp.Error("NOPERM User " + u.Name + " has no permissions to run the '" + cmd.Full + "' command")
}

// Refused counts err as a refusal and returns it.
func (s *Service) Refused(err error) error {
	s.Stats.NoPermission.Add(1)
	return err
}

// Protects reports whether protected mode rejects a client.
func (s *Service) Protects(nc net.Conn) bool {
	return s.ProtectedMode && s.Users.Load().Open() && !isLocal(nc.RemoteAddr())
}

// isLocal reports whether a client is on this machine.
func isLocal(addr net.Addr) bool {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		return tcp.IP.IsLoopback()
	}
	return addr.Network() == "unix"
}
