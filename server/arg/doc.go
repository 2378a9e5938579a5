// Package arg parses the arguments of commands that belong to no limit: keys, addresses and networks, and the options
// of operations. Package limits parses the arguments of limits. An error names the argument, states the accepted
// values, and quotes the received value.
//
// The package does not depend on commands, clients or limiters. Parsers of numbers and words allocate nothing.
package arg
