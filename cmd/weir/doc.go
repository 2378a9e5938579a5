// Command weir is the server: weir serve answers limiter commands over the Redis
// protocol, weir help tells which there are.
//
// This package is a checklist. It reads what the user wants from flags, WEIR_*
// variables and a YAML file, builds the parts, and stops them in the right order;
// what the parts do is theirs.
package main
