// Package codec decodes the stored form of entries and policies: integers as varints, and byte
// strings of known length.
//
// The methods of a decoder return no errors. A fault sets Decoder.Bad, and the results after it
// have no meaning. The caller checks Bad once, after it has read everything.
package codec
