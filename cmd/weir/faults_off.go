//go:build !weirfaults

package main

import "github.com/weir-project/weir/internal/faults"

// testFaults has no flags, because only a test build can inject faults.
type testFaults struct{}

func (testFaults) faults() (none faults.Set, err error) { return none, nil }
