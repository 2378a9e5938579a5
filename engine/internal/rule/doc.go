// Package rule is what a limiter is asked to keep to: algorithms, rates, windows, the
// steps of strikes and the bounds of all of them, with their text and their stored form.
//
// Rules are values without state. The package promises that two equal limits are the same
// limit, and that the arithmetic of every limit within the bounds neither rounds nor
// overflows. How a limiter decides under a rule is the business of package engine, which
// names these types for the rest of the module.
package rule
