// Package codec reads the stored form of entries and policies: integers as varints, and
// byte strings of known length.
//
// A decoder never fails half-way: after the first fault it returns zeros, and its user
// asks once, at the end, whether what it read was valid.
package codec
