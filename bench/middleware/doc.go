// Package middleware measures how much a rate limit costs a web application. It compares three handlers: without a
// limit, behind client/httplimit and weir, and behind ulule/limiter and go-chi/httprate with Redis. It is a separate
// module, so that weir does not depend on the libraries that it is compared with.
//
//	make bench-middleware
//
// Both servers run as separate processes on this machine. Clients reach both through go-redis with the same pool.
// Contenders take turns, so that other work of the machine affects all of them. Results are medians, and no test
// passes or fails by them.
package middleware
