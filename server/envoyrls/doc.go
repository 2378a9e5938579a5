// Package envoyrls implements Envoy's rate limit service (RLS), version 3, over gRPC. Each descriptor of a call is a
// check under the policy that the descriptor names. Kuadrant's service, which has the same messages, looks before a
// request and reports after it. See docs/http.md.
//
// It promises that one batch of decisions answers a call. Envoy may admit a request after an error, so a request of
// Envoy's clients must never cause an error. After Shutdown no call reaches the limiter. The program provides listeners
// and certificates.
package envoyrls
