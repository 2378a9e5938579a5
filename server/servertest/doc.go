// Package servertest stands in for limiters, clusters and clients in the tests of package server
// and of the packages below it.
package servertest
