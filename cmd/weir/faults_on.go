//go:build weirfaults

package main

import (
	"fmt"

	"github.com/weir-project/weir/internal/faults"
)

// testFaults are flags that only a test build has.
type testFaults struct {
	TestFault []string `hidden:"" help:"For tests: make a known mistake."`
}

func (f *testFaults) faults() (faults.Set, error) {
	set, err := faults.Named(f.TestFault)
	if err != nil {
		return set, fmt.Errorf("--test-fault: %w", err)
	}
	return set, nil
}
