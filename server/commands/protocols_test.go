package commands

import (
	"github.com/weir-project/weir/server/httpapi"
)

// newHTTP is the HTTP side of a server, without the check.
func newHTTP(srv *Shared) *httpapi.Server { return newHTTPCheck(srv, httpapi.CheckOff) }

// newHTTPCheck is the HTTP side of a server, with the check for whom check says.
func newHTTPCheck(srv *Shared, check string) *httpapi.Server {
	h, err := httpapi.New(srv.Service, srv, check)
	if err != nil {
		panic(err)
	}
	return h
}
