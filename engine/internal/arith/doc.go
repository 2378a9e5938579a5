// Package arith is the arithmetic of decisions: 128-bit integers, instants that saturate, and a
// few functions on doubles.
//
// Results are exact where they are integers, and the functions on doubles return the same bits on
// every processor. The package holds no state. Units, limits and rates are defined by its callers.
package arith
