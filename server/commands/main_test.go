package commands

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain allows for net/http, which keeps the connection of a refused request half open for half a second, longer
// than goleak waits.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}
