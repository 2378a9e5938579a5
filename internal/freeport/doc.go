// Package freeport gives tests and benchmarks addresses for servers that must know their port before they start, or
// keep it when they restart.
//
// A free port that is only looked up may be taken before the server listens: by another test, by another process, or by
// an outgoing connection. So a process reserves a block of ports. The reservation is a listener on the block's first
// port, which lives as long as the process. The ports lie below the range from which systems take ports for outgoing
// connections (32768 on Linux).
package freeport
