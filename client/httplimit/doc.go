// Package httplimit limits HTTP requests with weir. It provides middleware for net/http.
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
// A request belongs to at most one route. The middleware does not limit a request that matches no
// route. It does not limit preflight requests (OPTIONS) unless an option asks for that, nor any
// request while Options.Enabled is false.
//
// A reply has the remaining units in the fields of the IETF draft, and in the older fields that
// are in use. A denial is a 429 with Retry-After and a problem document (RFC 9457). A denial by the
// fallback, because weir is not reached, is a 503: the client has done nothing wrong.
//
// # Patterns
//
// A pattern without '*' is a pattern of [http.ServeMux]: the most specific pattern matches, in
// whatever order the patterns are listed. A pattern with '*' is a glob over the whole path:
//
//   - '*' matches any characters except the slash, or nothing: "/v*/login", "/users/*/keys".
//   - "**" matches any characters, slashes included. "**/login**" matches /login, /api/login/reset
//     and /loginAgain. "/health**" matches every path that begins with /health. As a whole segment
//     "**" matches any number of segments, or none: "/api/**" matches /api and every path below it.
//   - A method and a host precede the path as in http.ServeMux: "POST **/login**",
//     "example.com/api/**". In all patterns, a host of one label ends in a dot ("intranet./**"),
//     and an IPv6 address is in brackets ("[::1]/**").
//   - No other wildcard exists. %2A matches the character '*'.
//   - If two globs match, or a glob and another pattern, the pattern listed first wins. List the
//     narrower pattern first: New refuses a route that no request reaches.
//   - Matching is case-sensitive. A slash at the end of a path is optional.
//   - Patterns match the decoded path without dot segments and double slashes. Servers read an
//     encoded slash (%2F) and path parameters (;jsessionid=1) in different ways. A route's glob
//     matches if it matches one reading, and an exclusion matches only if it matches every reading.
//   - New accepts at most 64 globs, of at most 127 bytes besides their stars. Each glob reads each
//     byte of a path once, so the cost of a match is linear in the length of the path.
//
// # What it promises
//
//   - The middleware believes an address in X-Forwarded-For only if a trusted network wrote it. An
//     IPv6 client is identified by its /64.
//   - A key is never longer than weir accepts, whatever a client sends. A key made of a secret is a
//     hash of the secret.
//   - All clients that send no key share one limiter.
//
// # What it leaves to others
//
// The middleware does not check that a key was issued. A client that invents a key for each request
// gets a new limiter each time. Place the middleware behind the check of keys, or behind another
// limit that counts by IP.
package httplimit
