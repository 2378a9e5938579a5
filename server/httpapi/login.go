package httpapi

import (
	"errors"
	"net/http"

	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/service"
)

// errNotThisMachine rejects a request from another machine if no password protects the server.
var errNotThisMachine = errors.New("without a password weir accepts only requests from its own machine, to localhost " +
	"or one of its addresses: set a password, or for --http-socket give --http-check open")

// httpUser authenticates the sender of a request.
func httpUser(s *service.Service, r *http.Request) (*acl.User, error) {
	return s.Authenticate(r.RemoteAddr, r.Header.Get("Authorization"), nil, service.LoginMemoryOf(r.Context()))
}

// refuseLogin answers a request whose sender is not authenticated.
func refuseLogin(w http.ResponseWriter, err error) {
	if errors.Is(err, errNotThisMachine) {
		writePlain(w, http.StatusForbidden, err.Error())
		return
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="weir", charset="UTF-8"`)
	writePlain(w, http.StatusUnauthorized, "this needs a user of this server and the password; the user without a "+
		"name is "+acl.DefaultUser)
}
