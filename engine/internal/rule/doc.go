// Package rule defines limits: algorithms, rates, windows, the steps of strikes, the bounds of all
// of them, their text and their stored form.
//
// Rules are values without state. Two equal limits are the same limit. The arithmetic of every
// limit within the bounds neither rounds nor overflows. Package engine decides under these limits,
// and exports the types to the rest of the module.
package rule
