package server

import (
	"testing"

	"go.uber.org/goleak"
)

// net/http keeps the connection of a rejected request half open for half a second, longer than goleak waits. rueidis
// sleeps up to a second before it reads the map of slots again, also after the client was closed.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}
