// Package policytext parses and formats policies in the syntax of RL.POLICY. The commands of the server and package
// policyfile share it, so that policies have one notation.
//
// Parse parses a whole change. Find returns the parser of one subcommand. Words, Limits and Rule format policies and
// limits for parsing. Errors have the texts that a client reads.
package policytext
