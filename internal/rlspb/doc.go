// Package rlspb has the messages of Envoy's rate limit service. The package that Envoy's
// project generates has them too, with all that they could ever refer to: five megabytes
// of the binary for eight small messages.
package rlspb

//go:generate protoc --go_out=. --go_opt=paths=source_relative rls.proto
