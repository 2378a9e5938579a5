// Package machine reads measurements of the operating system: the kind of machine, the time that its disk takes, and
// the CPU time, memory and disk writes of processes.
package machine
