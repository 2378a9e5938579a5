// Package limits is the grammar of limits: how the server's commands, policy files and programs that use the client
// write them, and the bounds of every argument. Reader reads limits, and Rule and Text write them.
//
// An Error names the argument, states the accepted values and quotes the received one. It belongs to no protocol. The
// bounds of what the engine can compute are engine.Limit.Valid. Parsers of numbers and words allocate nothing.
package limits
