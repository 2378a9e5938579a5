package server

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/connlimit"
)

// errNotThisMachine refuses a request that no password vouches for.
var errNotThisMachine = errors.New("without a password weir answers here only requests from its own machine, to localhost or to an address of it: set a password")

// httpUser is who sent a request: by Basic authentication, or with the password of the
// user default as a Bearer token. Where that user needs no password everybody is he; a user
// without one (nopass) has proved nothing, whatever the request says. Guesses are held back
// as on the other ports, and as there a connection that has logged in waits no more.
func (s *Server) httpUser(r *http.Request) (*user, error) {
	users := s.users.Load()
	credentials := r.Header.Get("Authorization")
	name, password, given := r.BasicAuth()
	if token, is := strings.CutPrefix(credentials, "Bearer "); is {
		name, password, given = "", token, true
	}
	switch {
	case !given && users.open():
		return users.get(defaultUser), nil
	case !given:
		return nil, errNoAuth
	}
	if name == "" {
		name = defaultUser
	}
	from, login := connlimit.SourceOf(r.RemoteAddr), loginOf(r)
	if !login.recalls(credentials) {
		if err := s.awaitLogin(s.failed.turn(from, time.Now())); err != nil {
			return nil, err
		}
	}
	u := users.login([]byte(name), []byte(password))
	if u == nil {
		s.loginFailed(from)
		return nil, errWrongPass
	}
	login.remember(credentials)
	return u, nil
}

// refuseLogin answers a request whose sender is not known.
func refuseLogin(w http.ResponseWriter, err error) {
	if errors.Is(err, errNotThisMachine) {
		writePlain(w, http.StatusForbidden, err.Error())
		return
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="weir", charset="UTF-8"`)
	writePlain(w, http.StatusUnauthorized, "this needs a user of this server and the password; the user without a name is "+defaultUser)
}

// mayCallAll says whether the user may send a command about any key.
func (s *Server) mayCallAll(u *user, command string) bool {
	return !u.limited || u.allKeys && s.state.table.find([]byte(command)).allowedTo(u)
}

// mayCheck refuses, and counts, an operation that the user may not send by RL.CHECK.
func (s *Server) mayCheck(u *user, cmd *command, op *engine.Op) error {
	switch {
	case !u.limited:
		return nil
	case !cmd.allowedTo(u):
		return s.refused(notPermitted(u, cmd))
	case !u.mayUse(op.Key):
		return s.refused(errNoKey)
	}
	return nil
}
