package envoyrls

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/rlspb"
)

// TestRLSFrom checks that Envoy's remote_address applies to all descriptors of a call.
func TestRLSFrom(t *testing.T) {
	entry := func(key, value string) *rlspb.Entry { return &rlspb.Entry{Key: []byte(key), Value: []byte(value)} }
	q, err := readRequest(&rlspb.Request{Domain: []byte("d"), Descriptors: []*rlspb.Descriptor{
		{Entries: []*rlspb.Entry{entry("user", "42")}},
		{Entries: []*rlspb.Entry{entry("remote_address", "::ffff:192.0.2.66")}},
	}})
	require.NoError(t, err)
	require.Equal(t, "ip:192.0.2.66 ip:192.0.2.66", string(q.Ops[0].From)+" "+string(q.Ops[1].From))
	q, err = readRequest(&rlspb.Request{Domain: []byte("d"),
		Descriptors: []*rlspb.Descriptor{{Entries: []*rlspb.Entry{entry("remote_address", "?"),
			entry("user", "192.0.2.66")}}}})
	require.NoError(t, err)
	require.Empty(t, q.Ops[0].From)
}

func TestRLSNames(t *testing.T) {
	long := strings.Repeat("x", 600)
	for name, c := range map[string]struct {
		domain      string
		entries     []string
		policy, key string
	}{
		"one value": {"web", []string{"remote_address", "192.0.2.7"}, "web:remote_address", "192.0.2.7"},
		"words of Envoy": {"web", []string{"generic_key", "login", "header_match", "post", "query_match", "q"},
			"web:login:post:q", "all"},
		"a word and a value": {"web", []string{"generic_key", "login", "user", "42"}, "web:login:user", "42"},
		"values kept apart":  {"web", []string{"a", "x|y", "b", "50%"}, "web:a:b", "x%7Cy|50%25"},
		"IPv6": {"web", []string{"remote_address", "2001:db8:1:2:3::4"}, "web:remote_address",
			"2001:db8:1:2::/64"},
		"masked": {"web", []string{"masked_remote_address", "2001:db8::/32"}, "web:masked_remote_address",
			"2001:db8::/32"},
		"other characters": {"default/eg/http", []string{"a b", "é"}, "default_eg_http:a_b", "é"},
		"nothing":          {"web", nil, "web", "all"},
		"no value":         {"web", []string{"user", ""}, "web:user", "anonymous"},
		"a limiter's own name": {"web", []string{"user", "policy|web:user|0|42"}, "web:user",
			"#" + hashed("policy|web:user|0|42", 16)},
		"long": {long, []string{"user", long}, strings.Repeat("x", 55) + "." + hashed(long+":user", 4),
			"#" + hashed(long, 16)},
	} {
		t.Run(name, func(t *testing.T) {
			var all []*rlspb.Entry
			for i := 0; i < len(c.entries); i += 2 {
				all = append(all, &rlspb.Entry{Key: []byte(c.entries[i]), Value: []byte(c.entries[i+1])})
			}
			require.Equal(t, c.policy, policyOf([]byte(c.domain), all))
			require.Equal(t, c.key, keyOf(all))
		})
	}
}
