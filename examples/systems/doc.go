// Package systems has a directory for each of five systems that other people have described. Each contains the system
// of its document, with weir in place of Redis. A test starts the system and runs the examples of the document. A
// test whose tools are missing skips, and names them.
package systems
