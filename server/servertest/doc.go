// Package servertest provides fake limiters, clusters and clients for the tests of package server and its subpackages.
package servertest
