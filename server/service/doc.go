// Package service is the layer under the protocols of a server. RESP, HTTP and Envoy's
// rate limit service each read requests and write replies; what lies between is here, once.
//
// A Service holds the Limiter and what is known about the server. It
//
//   - makes decisions: batches, redirects to the leader, ReadIndex;
//   - counts them, by command and by policy, and measures their time;
//   - tells them: to subscribers and monitors, to the slow log, to the page, and to the
//     requests that wait for units that were given back;
//   - decides who may log in, and delays guesses of passwords;
//   - says in words why something was refused.
//
// It is concrete, and called once a pipeline: accounting for a batch allocates nothing.
// All methods may be called from many goroutines.
//
// The package leaves to each protocol how a request is read and what a reply looks like.
// A protocol is one package that needs this one and no other protocol.
package service
