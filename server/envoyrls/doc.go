// Package envoyrls answers Envoys: their rate limit service, version 3, over gRPC. Each
// descriptor of a call is a check under the policy that the descriptor names. See
// docs/http.md.
//
// It promises that a call is answered from one batch of decisions, that what Envoy would
// let through in case of an error is never an error that a client can cause, and that after
// Shutdown no call reaches the limiter any more. Listeners and certificates are left to the
// program.
package envoyrls
