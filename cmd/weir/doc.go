// Command weir is the server. weir serve answers limiter commands over the Redis protocol, and weir help lists all
// commands.
//
// This package reads the settings of the user from flags, WEIR_* variables and a YAML file. It builds the parts of the
// server and stops them in the right order. The behaviour of each part belongs to the package of that part.
package main
