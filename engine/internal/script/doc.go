// Package script carries out the Lua scripts of published limiter libraries without Lua, and the
// Redis commands on strings that such libraries send. Its effect is that of the script on the keys
// of a Redis whose clock is limiter time.
//
// A Run receives the state under its key and the arguments. It returns the script's answer and the
// new state. Doubles are equal, bit for bit on every processor, to those of the Lua in Redis.
// Package engine finds the entry, admits memory, applies blocks and counts statistics.
//
// The scripts of each library are in the file named after its dialect: text.go has strings
// (numbers 27 to 36), hash.go hashes (37 to 44), slidingset.go the sliding log (45 to 48).
package script
