// Package codec decodes the stored form of entries and policies: integers as varints, and byte
// strings of known length.
//
// A decoder never fails half-way. After the first fault it returns zeros. The caller checks for a
// fault once, after it has read everything.
package codec
