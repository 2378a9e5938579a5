// Package calls defines the calls between nodes on the inter-node port and the encoding of their outcomes. Reply
// encodes an error as an answer, and OutcomeOf decodes it. The bytes are part of the protocol between versions of
// weir and never change. The packages that make a call define its payload.
package calls
