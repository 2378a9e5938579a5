// Package systems has a directory for each of five systems that other people have described:
// the system as its document has it, with weir in place of Redis. A test starts each of them
// and goes through the document's own examples. A test whose tools are missing skips, and
// says which.
package systems
