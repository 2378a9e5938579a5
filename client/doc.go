// Package client is the Go client of weir: it asks a weir server for decisions and holds a fallback
// for times when the server is not reached.
//
//	rdb := redis.NewUniversalClient(&redis.UniversalOptions{
//		Addrs: []string{"127.0.0.1:6380"}, ContextTimeoutEnabled: true,
//	})
//	limits, err := client.New(rdb, client.Options{WhenDown: client.Local})
//	...
//	chat := client.TokenBucket(client.PerSecond(10), 100)
//	decision, err := limits.Take(ctx, chat, "user:42")
//
// The client uses the program's own go-redis client for pools, TLS, passwords and clusters. It adds
// the following behaviour:
//
//   - A decision never waits longer than Options.Timeout. While weir is busy, a request is denied
//     (FromBusy), so that nobody passes by making weir slow. When weir is not there,
//     Options.WhenDown selects the fallback: admit everything, deny everything, or decide with a
//     limiter in this process at a fraction of the limits. The client logs the switch once. One
//     goroutine probes weir, and the client returns to it automatically (a circuit breaker). The
//     client fetches used policies in advance, so Local has their limits.
//   - A denied key is answered from memory until its retry time.
//   - The client resends a request only if that is safe: always after TRYAGAIN, and after an
//     unknown outcome only if the request counts once: with an ID, or for a slot. It disables
//     the retries of go-redis.
//   - Wait paces outbound calls. Queue waits in the server's queue. A Lease takes units in batches
//     and hands them out without a round trip. A Slot bounds work in progress. A Hold takes units
//     before the true cost is known.
//
// # What it promises
//
//   - A decision fails only if the request is invalid, if weir refuses it, or if the caller's
//     context ends. If weir is not reached, the fallback decides, and Decision.Source names it.
//     With Options.FallBackOnErrors the fallback also decides when weir answers with an error.
//   - Memory is bounded: cached denials by Options.DenialKeys, the limiter in this process by
//     localMemoryBytes, and cached policies by maxCachedPolicies.
//   - A Lease never hands out more units than weir granted. A unit stays in a Lease for at most
//     LeaseOptions.MaxAge. So leases hand out over any time T at most what the limit admits over
//     T + MaxAge.
//   - No goroutine outlives Close.
//
// # What it leaves to others
//
// Package httplimit limits HTTP requests, package grpclimit limits gRPC calls, and package
// clientprom exports metrics.
package client
