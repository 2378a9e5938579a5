// Command mutants measures what the tests of a package notice: it changes one condition
// or one call at a time and says which changes no test fails on.
//
// All mutants of a package are compiled into one test binary, each behind a switch that
// an environment variable sets (mutant schemata, R. H. Untch, A. J. Offutt and M. J.
// Harrold, "Mutation analysis using mutant schemata", ISSTA 1993), so that a mutant costs
// a run of the tests that reach it and no build. The sources are not touched: the changed
// copies reach the compiler as an overlay.
//
//	go run ./internal/mutants -count 60 ./persistence ./raftstore
//
// A run prints a line for each mutant that no test noticed, and the counts. A mutant that
// cannot be told from the original is listed with its reason in equivalent.txt, and is not
// counted as a survivor.
package main
