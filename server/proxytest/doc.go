// Package proxytest puts real proxies in front of a web server and lets them ask weir's
// HTTP check. Each test skips, and says so, where its proxy is not installed.
package proxytest
