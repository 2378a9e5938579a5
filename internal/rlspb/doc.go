// Package rlspb has the messages of Envoy's rate limit service and of the control planes that configure it. The
// generated packages of Envoy have them too, together with everything that they could refer to. They would add five
// megabytes to the binary for some small messages.
package rlspb

//go:generate protoc --go_out=. --go_opt=paths=source_relative rls.proto config.proto
