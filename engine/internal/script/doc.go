// Package script carries out the scripts of published limiter libraries natively, and the
// Redis commands on strings that such libraries send beside them: what the script would
// have done to the keys of a Redis whose clock is limiter time.
//
// A run is given what is kept under its key and the arguments, answers what the script
// answers, and says what is to be kept. It promises the doubles of the Lua in Redis, bit for
// bit on every processor. Finding the entry, room in memory, blocks and statistics are the
// business of package engine.
//
// What each script does stands in the file named after its dialect: text.go has strings
// (numbers 27 to 36), hash.go hashes (37 to 44), slidingset.go the sliding log (45 to 48).
package script
