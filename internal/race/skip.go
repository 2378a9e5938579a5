package race

import "testing"

// Skip skips a test under the race detector, because the test has one goroutine, where the detector finds nothing, or
// because the detector changes what it measures. "make test" runs these tests without the detector.
func Skip(t *testing.T, why string) {
	t.Helper()
	if Enabled {
		t.Skip("the race detector " + why)
	}
}

// OneGoroutine is why a test with one goroutine skips.
const OneGoroutine = "finds nothing in one goroutine"
