// Package service is the layer under the protocols of a server. RESP, HTTP and Envoy's rate limit service (RLS) each
// read requests and write replies. This package holds the logic that they share.
//
// A Service owns the Limiter and the state of the server. It
//
//   - makes decisions: batches, redirects to the leader, ReadIndex;
//   - counts decisions by command and by policy, and measures their latency;
//   - publishes decisions to subscribers, monitors, the slow log, the page, and the requests that wait for returned
//     units;
//   - authenticates users and delays password guesses;
//   - defines the error texts.
//
// Service is a concrete type. Protocols call it once per pipeline, and accounting for a batch allocates nothing. All
// methods may be called from many goroutines.
//
// The package leaves parsing requests and formatting replies to the protocols. A protocol is one package that imports
// this package and no other protocol.
package service
