// Package cmdline reads the command lines of weir's programs. Kong parses them; this package adds
// what a tired operator needs: variables and values that mean nothing are refused, and an error
// says what is accepted and what was probably meant.
//
// It knows no command. What a flag means is a matter of the command that has it.
package cmdline
