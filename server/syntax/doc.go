// Package syntax parses the syntax lines of the command table into arguments, for COMMAND DOCS and for generators of
// commands. It parses only lines that the program itself contains. Package commands defines the meaning of an argument.
package syntax
