package identity

// Durability is the condition under which an entry counts as written.
type Durability string

// The durabilities.
const (
	Fsync  Durability = "fsync"  // on the disks of a majority
	OS     Durability = "os"     // in the page caches of a majority: survives a crash of processes, not of machines
	Memory Durability = "memory" // in the memory of a majority: a node that stops loses its log
)
