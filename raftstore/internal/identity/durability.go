package identity

// Durability says when an entry counts as written.
type Durability string

// The durabilities.
const (
	Fsync  Durability = "fsync"  // on the disks of a majority
	OS     Durability = "os"     // in the page caches of a majority: survives processes, not machines
	Memory Durability = "memory" // in the memory of a majority: a node that stops has lost its log
)
