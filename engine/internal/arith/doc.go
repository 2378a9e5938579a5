// Package arith is the arithmetic that decisions are made of: 128-bit integers,
// instants that saturate, and the few functions on doubles that must give the same bits
// on every processor.
//
// The package promises exact results, and the same results on every machine. It holds no
// state. What the numbers mean (units, limits, rates) is known to its users only.
package arith
