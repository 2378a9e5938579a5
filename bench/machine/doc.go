// Package machine reads what the operating system tells: what machine this is, how long its disk
// takes, and the CPU time, memory and disk writes of processes.
package machine
