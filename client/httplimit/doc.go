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
// A request belongs to one route; one that matches none passes. Preflight requests (OPTIONS)
// pass unless asked for, and so do all requests while Options.Enabled is false. Replies tell what
// is left, in the fields of the IETF draft and in those in use before it; a denial is a 429 with
// Retry-After and a problem document (RFC 9457). A denial by the fallback, because weir is not
// reached, is a 503: the client has done nothing wrong.
//
// # Patterns
//
// Patterns without '*' are those of [http.ServeMux]: the best fit counts, in whatever order
// they are written. A pattern with '*' is a glob over the whole path:
//
//   - '*' is any characters but the slash, also none: "/v*/login", "/users/*/keys".
//   - "**" is any characters, slashes included: "**/login**" matches /login, /api/login/reset and
//     /loginAgain, "/health**" every path that begins with /health. As a whole segment it is any
//     number of segments, also none: "/api/**" matches /api and everything below it.
//   - A method and a host stand before it as they do for http.ServeMux: "POST **/login**",
//     "example.com/api/**". A host of one label ends in a dot ("intranet./**"), one of IPv6 stands
//     in brackets ("[::1]/**"), here and in patterns without '*'.
//   - There is no other wildcard; %2A is the character.
//   - Of two globs, or a glob and another pattern, the one written first counts. Write the
//     narrower one first: New refuses a route that no request reaches.
//   - Case counts. A slash at the end of a path is optional.
//   - What is matched is the decoded path without dot segments and double slashes. Where servers
//     differ, about an encoded slash (%2F) and path parameters (;jsessionid=1), a route's glob
//     matches if it matches in one reading, and an exclusion only if it does in each.
//   - New takes at most 64 globs, of at most 127 bytes besides their stars. Each looks at each
//     byte of a path once, so that a path costs what it is long and no more.
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
