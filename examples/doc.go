// Package examples contains a web server with a limit for each of several frameworks and proxies. A test starts each
// example and sends it requests, with a real weir behind it. A test whose tools are missing skips, and names them.
package examples
