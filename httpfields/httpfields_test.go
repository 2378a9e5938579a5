package httpfields

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFields(t *testing.T) {
	now := time.Unix(1_705_315_770, 1)
	all := Quota{Name: "api", Limit: 60, Remaining: 45, ResetAfter: 29 * time.Second, Window: time.Minute}
	denied := Quota{Name: "api", Limit: 60, ResetAfter: time.Minute, Denied: true, RetryAfter: 2001 * time.Millisecond}
	for name, c := range map[string]struct {
		quota Quota
		style Style
		want  map[string]string
	}{
		"admitted": {all, IETF | XEpoch, map[string]string{
			RateLimitPolicy: `"api";q=60;w=60`, RateLimit: `"api";r=45;t=29`, XLimit: "60", XRemaining: "45",
			XReset: "1705315800"}},
		"denied": {denied, IETF | XDelta, map[string]string{
			RateLimitPolicy: `"api";q=60`, RateLimit: `"api";r=0;t=3`, XLimit: "60", XRemaining: "0", XReset: "60",
			RetryAfter: "3"}},
		"never again": {Quota{Limit: 5, ResetAfter: Never, Denied: true, RetryAfter: Never}, IETF | XEpoch,
			map[string]string{RateLimitPolicy: `"";q=5`, RateLimit: `"";r=0`, XLimit: "5", XRemaining: "0",
				RetryAfter: "31536000"}},
		"soon": {Quota{Denied: true, RetryAfter: time.Millisecond}, IETF | XEpoch,
			map[string]string{RetryAfter: "1"}},
		"the longest wait": {Quota{Limit: 5, ResetAfter: Never - 1, Denied: true, RetryAfter: Never - 1}, IETF,
			map[string]string{RateLimitPolicy: `"";q=5`, RateLimit: `"";r=0;t=9223372037`, RetryAfter: "9223372037"}},
		"no fields": {denied, None, map[string]string{RetryAfter: "3"}},
		"short window": {Quota{Name: "s", Limit: 1, Window: time.Millisecond}, IETF,
			map[string]string{RateLimitPolicy: `"s";q=1;w=1`, RateLimit: `"s";r=0;t=0`}},
		"hostile name": {Quota{Name: "a\"b\\c\r\nX: é", Limit: 1}, IETF,
			map[string]string{RateLimitPolicy: `"a\"b\\cX: ";q=1`, RateLimit: `"a\"b\\cX: ";r=0;t=0`}},
		"huge integers": {Quota{Limit: math.MaxInt64}, IETF,
			map[string]string{RateLimitPolicy: `"";q=999999999999999`, RateLimit: `"";r=0;t=0`}},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			c.quota.Set(h, c.style, now)
			got := map[string]string{}
			for field := range h {
				got[field] = h.Get(field)
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestNamesAreCanonical(t *testing.T) {
	for _, name := range []string{RateLimit, RateLimitPolicy, XLimit, XRemaining, XReset, RetryAfter} {
		require.Equal(t, name, http.CanonicalHeaderKey(name))
	}
}

func TestDetail(t *testing.T) {
	for want, after := range map[string]time.Duration{
		"Rate limit exceeded. Try again in 1 second.":           time.Millisecond,
		"Rate limit exceeded. Try again in 3 seconds.":          2500 * time.Millisecond,
		"Rate limit exceeded. Try again in 9223372037 seconds.": Never - 1,
	} {
		require.Equal(t, want, Quota{RetryAfter: after}.Detail())
	}
	for reason, want := range map[Reason]string{
		NotKnown: "No wait helps.", NeverFits: "The request asks for more than the limit ever allows.",
		UsedUp:  "The limit is used up, and units never return by themselves.",
		Blocked: "The client is blocked until the block is lifted.",
	} {
		require.Equal(t, "Rate limit exceeded. "+want, Quota{RetryAfter: Never, Never: reason}.Detail())
	}
}
