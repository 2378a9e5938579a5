package commands

import (
	"github.com/weir-project/weir/server/httpapi"
)

// newHTTP returns the HTTP side of a server, with the check disabled.
func newHTTP(srv *Shared) *httpapi.Server { return newHTTPCheck(srv, httpapi.CheckOff) }

// newHTTPCheck returns the HTTP side of a server. check says who may use the check.
func newHTTPCheck(srv *Shared, check string) *httpapi.Server {
	h, err := httpapi.New(srv.Service, srv, check, true)
	if err != nil {
		panic(err)
	}
	return h
}
