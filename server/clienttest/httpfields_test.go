package clienttest

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/httpfields"
)

// TestFieldsAreStructured reads the header fields with another parser of structured fields (RFC 9651).
func TestFieldsAreStructured(t *testing.T) {
	for _, quota := range []httpfields.Quota{
		{Name: "api", Limit: 60, Remaining: 45, ResetAfter: 29 * time.Second, Window: time.Minute},
		{Name: "api", Limit: 60, ResetAfter: time.Minute, Denied: true, RetryAfter: 2001 * time.Millisecond},
		{Limit: 5, ResetAfter: httpfields.Never, Denied: true, RetryAfter: httpfields.Never},
		{Name: "a\"b\\c\r\nX: é", Limit: 1}, {Limit: math.MaxInt64},
	} {
		h := http.Header{}
		quota.Set(h, httpfields.IETF, time.Now())
		for _, field := range []string{httpfields.RateLimit, httpfields.RateLimitPolicy} {
			list, err := httpsfv.UnmarshalList(h[field])
			require.NoError(t, err, "%s: %s", field, h[field])
			require.Len(t, list, 1)
		}
	}
}
