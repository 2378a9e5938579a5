// Package evloop lets a few goroutines wait for the input of many connections (an event loop over epoll).
//
// With a goroutine per connection, each single request costs an unsuccessful read, a parking and a wake-up of the
// goroutine. Here an idle connection has no goroutine. A poller waits for all connections at once, and calls the read
// cycle of each connection with input. A read cycle reads, answers and returns.
//
// A read cycle that may block does not delay other connections: it calls Detach, and its goroutine then serves only
// this connection until the read cycle returns. Another goroutine takes over as the poller. This is the
// leader/followers pattern (Schmidt, O'Ryan, Pyarali, Kircher and Buschmann, "Leader/Followers", PLoP 2000). Read and
// Write of a Conn block as for any net.Conn, and a read cycle calls Detach before them. Write of a CycleConn detaches
// by itself when it must wait.
//
// One poller suffices until it is continuously busy. It then starts helpers, up to one per processor, which end when
// they find no event. Under a light load one processor thus does all the work without waking others. Under a heavy load
// all processors work.
//
// The package supports Linux only. On other systems New fails with ErrUnsupported.
package evloop
