// Package certs keeps a certificate, its key and the authorities it trusts, as they
// lie in files, and hands them to both sides of a TLS connection.
//
// The files are looked at again at a handshake, at most once a second, and when
// Reload is called: a certificate is renewed by replacing its files. What cannot be
// used, a certificate without its key for a moment, changes nothing and is logged;
// connections that are up keep what they began with.
//
// Who may connect is decided by the authority here. What a certificate's name allows
// is decided by who uses the connection: see package raftstore/peer for nodes.
package certs
