// Package certs loads a certificate, its key and the trusted authorities from files, and configures both sides of a TLS
// connection.
//
// A handshake checks the files for changes, at most once a second, and Reload reads them again. Replacing the files
// therefore renews a certificate. Unusable files, such as a new certificate without its key, change nothing and are
// logged. Open connections keep their certificate.
//
// The authorities decide which peers may connect. The user of a connection decides what a certificate's name permits.
// Package raftstore/peer does so for nodes.
package certs
