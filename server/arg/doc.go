// Package arg reads the arguments of commands: numbers, durations, rates, keys, addresses,
// options and the steps of a limit. Each reader returns an error that names the argument,
// says what is accepted, and quotes what was sent, as the client will read it.
//
// Nothing here knows a command, a client or a limiter. Readers of numbers and words allocate
// nothing.
package arg
