// Package weirproc runs weir for tests as its users do: as processes of the built binary. A test starts one server or a
// cluster of three nodes, and can kill them. Servers use real time unless the test gives them --test-clock.
package weirproc
