// Package arg parses the arguments of commands: numbers, durations, rates, keys, addresses, options and the steps of a
// limit. Each parser returns an error for the client. The error names the argument, states the accepted values, and
// quotes the received value.
//
// The package does not depend on commands, clients or limiters. Parsers of numbers and words allocate nothing.
package arg
