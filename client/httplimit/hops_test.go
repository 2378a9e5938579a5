package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client/httplimit"
)

// TestHopsAreBounded checks that a chain of trusted proxies is followed for sixteen addresses. The seventeenth is
// ignored.
func TestHopsAreBounded(t *testing.T) {
	p, err := httplimit.Trust("10.0.0.0/8")
	require.NoError(t, err)
	client := func(trusted int) string {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "10.0.0.1:1"
		r.Header.Set("X-Forwarded-For", "203.0.113.9"+strings.Repeat(", 10.0.0.2", trusted))
		return p.ByIP()(r)
	}
	require.Equal(t, "ip:203.0.113.9", client(15), "the sixteenth address must be the client's")
	require.Equal(t, "ip:10.0.0.2", client(16), "the seventeenth address must be ignored")
	require.Equal(t, "ip:10.0.0.2", client(17))
}
