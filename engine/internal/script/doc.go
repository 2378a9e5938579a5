// Package script runs the Lua scripts of published limiter libraries without Lua, and the Redis string commands that
// such libraries send. A script has the same effect on its keys as in a Redis whose clock is limiter time.
//
// A [Run] receives the arguments and the state under its key. It returns the answer of the script and the new state.
// Doubles equal those of the Lua in Redis, bit for bit on every processor. Package engine finds the entry, admits
// memory, applies blocks and counts statistics.
//
// Each dialect has a file for its scripts: text.go has strings (numbers 27 to 36), hash.go has hashes (37 to 44), and
// slidingset.go has the sliding log (45 to 48). hits.go has the times of hits (49 to 52), upstash.go a library that
// counts in several windows (53 to 56), and window.go windows in a hash (57 to 58).
package script
