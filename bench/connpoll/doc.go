// Package connpoll sends and receives on many connections from one thread. The load generator of package bench does so
// in an open loop.
//
// On Linux it takes the connections out of the Go runtime and polls them with epoll. A goroutine for each connection
// reads ahead on other systems, and for connections that the operating system does not know.
package connpoll
