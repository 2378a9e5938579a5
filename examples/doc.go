// Package examples has a limit in front of a web server, once for each of some frameworks
// and proxies. Every one is started by a test and driven against a real weir; a test
// whose tools are missing skips, and says which.
package examples
