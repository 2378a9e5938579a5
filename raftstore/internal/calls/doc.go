// Package calls names what nodes ask of each other through the inter-node port, and how an outcome
// travels: Reply turns an error into an answer, OutcomeOf turns the answer back. The bytes are part
// of the protocol between versions of weir and never change. What a call carries is described where
// it is made.
package calls
