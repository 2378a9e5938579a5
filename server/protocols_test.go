package server

import (
	"github.com/weir-project/weir/server/httpapi"
)

// newHTTP is the HTTP side of a server, without the check.
func newHTTP(srv *Server) *httpapi.Server { return newHTTPCheck(srv, httpapi.CheckOff) }

// newHTTPCheck is the HTTP side of a server, with the check for whom check says.
func newHTTPCheck(srv *Server, check string) *httpapi.Server {
	h, err := httpapi.New(srv.Service, srv, check)
	if err != nil {
		panic(err)
	}
	return h
}
