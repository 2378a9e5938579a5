//go:build !unix

package info

// writeCPU omits the fields, because weir does not read the processor time of other systems.
func writeCPU(*Server, *writer) {}
