// Package walls tests which packages of the module import which others. It has no code but its tests.
//
// The table in imports_test.go has a line for each package: the imports that it may have, and why it needs no others. A
// new package, and a new import, need a change of the table. So a review sees each new dependency between packages. A
// permission that no import needs fails the test as well.
//
// TestEngineIsPure also forbids the engine to import packages for clocks, sockets, files and loggers, and math/rand.
package walls
