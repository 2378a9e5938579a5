// Package cmdline reads the command lines of weir's programs. Kong parses them. This package refuses variables and
// values without a meaning. Its errors list the accepted values and suggest the likely intended one.
//
// It knows no command. Each command defines the meaning of its own flags.
package cmdline
