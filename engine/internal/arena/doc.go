// Package arena keeps byte slots of a few sizes in pages of 16 KiB, so that a table of
// millions of small entries costs the garbage collector a few thousand pointers.
//
// A slab hands slots out, takes them back and says how many bytes it has. It notes in
// dirty bits which slots changed, and can choose sparse pages whose slots its user then
// moves away, so that whole pages become free. Chains are slots that begin with the
// reference to the next one.
//
// The arena knows nothing of what the slots hold, and nothing in it is safe for concurrent
// use but the meters: whoever owns a slab holds a lock.
package arena
