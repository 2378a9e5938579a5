// Package httplimit limits HTTP requests with weir, as middleware for net/http.
//
//	proxies, err := httplimit.Trust("10.0.0.0/8")
//	limit, err := httplimit.New(limits, httplimit.Options{
//		Routes: []httplimit.Route{
//			{Pattern: "POST /login", Rule: login, Key: proxies.ByIP()},
//			{Pattern: "/api/", Rule: api, Key: httplimit.FirstOf(httplimit.ByAPIKey("X-Api-Key"), proxies.ByIP())},
//		},
//		Exclude: []string{"/healthz", "/static/"},
//	})
//	http.ListenAndServe(addr, limit(mux))
//
// A request belongs to the route whose pattern fits it best, by the rules of
// http.ServeMux; one that fits none passes. Preflight requests (OPTIONS) pass unless
// asked for. Replies tell what is left, in the fields of the IETF draft and in those in
// use before it; a denial is a 429 with Retry-After and a problem document (RFC 9457). A
// denial by the fallback, because weir is not reached, is a 503: the client has done
// nothing wrong.
//
// # What it promises
//
//   - Whom X-Forwarded-For names is believed as far as it was written by the networks
//     that are trusted, and no further. An IPv6 client is its /64.
//   - A key is never longer than weir takes, whatever a client sends. Keys made of secrets
//     are hashes of them.
//   - A client that sends no key shares one limiter with the others that send none.
//
// # What it leaves to others
//
// Whether a key is one that was given out: whoever makes one up for each request has a
// limiter of his own each time. The middleware belongs behind what checks keys, or behind
// another that counts by IP.
package httplimit
