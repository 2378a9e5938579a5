package server

import (
	"testing"

	"go.uber.org/goleak"
)

// net/http keeps the connection of a rejected request half open for half a second, longer than goleak waits.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}
