// Package middleware measures what limiting a request costs a web application: the
// handler alone, behind client/httplimit and weir, and behind ulule/limiter and
// go-chi/httprate with Redis. It is a module of its own so that weir does not depend on
// what it is compared with.
//
//	make bench-middleware
//
// Both servers are processes of their own on this machine, both are asked through go-redis
// with the same pool, and contenders take turns, so that what else the machine does falls
// on all of them. Figures are medians; no test passes or fails by them.
package middleware
