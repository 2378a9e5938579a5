// Package rlspb has the messages of Envoy's rate limit service. Envoy's own generated package has them too, together
// with everything that they could refer to. It would add five megabytes to the binary for eight small messages.
package rlspb

//go:generate protoc --go_out=. --go_opt=paths=source_relative rls.proto
