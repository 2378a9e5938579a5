// Package scripts recognises the Lua scripts that limiter libraries send. weir runs no Lua. It identifies each
// published script by its SHA-1, parses its arguments into an engine.Script, and writes the reply as Redis would
// convert it from Lua.
//
// A library is a function that returns its dialect: its name, the package registry that publishes it, equivalent
// native commands, and its scripts with the SHA-1 of each published text. Another library needs such a function and a
// line in dialects() (table.go). Package engine implements the effects of the scripts.
package scripts
