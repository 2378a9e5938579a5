//go:build !weirfaults

package main

import "github.com/weir-project/weir/internal/faults"

// testFaults has no flags: only a program that is built for tests makes mistakes.
type testFaults struct{}

func (testFaults) faults() (none faults.Set, err error) { return none, nil }
