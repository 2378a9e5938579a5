// Package evloop lets a few goroutines wait for many connections.
//
// A goroutine for each connection costs, for every request that comes alone, a read
// that finds nothing, a parking and a waking. Here a connection that has nothing to
// do has no goroutine: a poller waits for all of them at once, and calls the turn of
// each that has something to read. A turn reads, answers and returns.
//
// A turn that may block is no reason for others to wait: it calls Detach, and from
// there on its goroutine is the connection's own, until the turn returns. Another
// goroutine takes over as the poller (the pattern is known as leader and followers:
// Schmidt, O'Ryan, Pyarali, Kircher and Buschmann, "Leader/Followers", PLoP 2000).
// Read and Write of a Conn block as those of any net.Conn do, and detach by
// themselves when they have to.
//
// One poller is enough until it is busy without a pause. Then it calls helpers, up
// to one for each processor, which leave when there is nothing left for them: under
// a light load one processor does all the work without waking others, under a heavy
// one all do.
//
// Linux only; elsewhere New fails with ErrUnsupported.
package evloop
