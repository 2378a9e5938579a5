// Package servers starts and stops what is measured: single processes, clusters of weir, a Redis
// with replicas. It also asks servers for what RESP tells about them. What it starts it stops, by
// process id.
package servers
