// Package weirproc runs weir for tests as its users do: as processes of the built binary,
// one server or a cluster of three nodes, which can be killed. Servers live in real time
// unless the test gives them --test-clock.
package weirproc
