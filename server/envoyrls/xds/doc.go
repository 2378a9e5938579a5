// Package xds gets the limits of envoyproxy/ratelimit from a control plane, by the state-of-the-world variant of xDS
// over one aggregated stream, as that program does with CONFIG_TYPE=GRPC_XDS_SOTW. It decides nothing, and keeps no
// limits: who uses it judges each version, which the control plane is told.
package xds
