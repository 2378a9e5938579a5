// Package client limits things with weir from Go programs.
//
//	rdb := redis.NewUniversalClient(&redis.UniversalOptions{
//		Addrs: []string{"127.0.0.1:6380"}, ContextTimeoutEnabled: true,
//	})
//	limits, err := client.New(rdb, client.Options{WhenDown: client.Local})
//	...
//	chat := client.TokenBucket(client.PerSecond(10), 100)
//	decision, err := limits.Take(ctx, chat, "user:42")
//
// It stands on go-redis, so that pools, TLS, passwords and clusters are what a program
// has already, and adds what a limiter needs beside:
//
//   - A decision never waits longer than Options.Timeout. When weir cannot be reached,
//     Options.WhenDown says what decides: everything is admitted, nothing is, or a
//     limiter in this process decides at a fraction of the limits. The switch is logged
//     once, one goroutine looks whether weir answers again, and the return is automatic.
//     Policies that are used are fetched before, so that Local knows their limits.
//   - A denied key is answered from memory until its retry time.
//   - What is safe to send again is: TRYAGAIN always, an unknown outcome only with an ID.
//     go-redis is kept from resending by itself.
//   - Wait paces outbound calls, Queue stands in line on the server; a Lease takes units
//     in batches and hands them out without a round trip; a Slot bounds work in progress;
//     a Hold is for what is paid when it is over.
//
// # What it promises
//
//   - An error means that weir refused the request, or that the caller's context ended.
//     That weir is down is no error: Decision.Source says who decided. With
//     Options.FallBackOnErrors the same holds for what weir answers with an error.
//   - Memory is bounded: denials by Options.DenialKeys, the limiter of the process by
//     localMemoryBytes, policies that are kept by maxCachedPolicies.
//   - A Lease never hands out more units than weir granted. Units wait in it at most
//     LeaseOptions.MaxAge, so that over any time T a limit admits no more than it does
//     over T + MaxAge.
//   - No goroutine outlives Close.
//
// # What it leaves to others
//
// HTTP and gRPC are packages httplimit and grpclimit below this one, metrics clientprom.
package client
