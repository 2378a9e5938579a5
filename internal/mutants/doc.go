// Command mutants measures how well the tests of a package detect changes (mutation testing). It changes one condition
// or one call at a time, and lists the changes that no test detects.
//
// All mutants of a package are compiled into one test binary. An environment variable switches one of them on (mutant
// schemata, R. H. Untch, A. J. Offutt and M. J. Harrold, "Mutation analysis using mutant schemata", ISSTA 1993). A
// mutant therefore costs one run of the tests that reach it, and no build. The sources are not touched: the changed
// copies reach the compiler as an overlay.
//
//	go run ./internal/mutants -count 60 ./persistence ./raftstore
//
// A run prints a line for each mutant that no test detected, and the counts. Mutants that behave like the original are
// listed with their reasons in equivalent.txt, and do not count as survivors.
package main
