// Package scripts recognises the Lua scripts that limiter libraries send. weir runs no Lua: it
// knows each published script by its SHA-1, reads its arguments into an engine.Script, and
// writes the answer as Redis would convert it from Lua.
//
// A library is a function that returns its dialect: name, registry, the native commands to move
// to, and its scripts with the SHA-1 of each published text. Another library needs such a
// function and a line in the list of dialects; what its scripts do is written in package engine.
package scripts
