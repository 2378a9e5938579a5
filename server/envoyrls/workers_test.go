package envoyrls

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/service"
)

// TestNoWorkersWithoutAListener checks that a server without --rls has no workers that wait for calls.
func TestNoWorkersWithoutAListener(t *testing.T) {
	before := runtime.NumGoroutine()
	r := New(new(service.Service), nil)
	require.Less(t, runtime.NumGoroutine()-before, rlsWorkers/2)
	r.Shutdown(t.Context())
}
