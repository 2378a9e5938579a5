// Package certs loads a certificate, its key and the trusted authorities from files, and configures both sides of a TLS
// connection.
//
// A handshake checks the files for changes, at most once a second, and Reload reads them again. Replacing the files
// therefore renews a certificate. Unusable files, such as a new certificate without its key, change nothing and are
// logged. Open connections keep their certificate.
//
// The authorities decide which peers may connect. The package that uses a connection decides what the name in the
// peer's certificate permits. For nodes that is package raftstore/peer.
package certs
