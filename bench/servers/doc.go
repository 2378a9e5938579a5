// Package servers starts and stops the servers that package bench measures: single processes, clusters of weir, and a
// Redis with replicas. It also reads their state over RESP. It stops every process that it starts, by process id.
package servers
