package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPipelineIsWhatRedisBenchmarkSends(t *testing.T) {
	l := Load{Workload: TokenBucket, Pipeline: 3, Keys: 999_999_999_999}
	p := sender{l, weirCommands()}.pipeline()
	p.setKey(1, 42)
	p.setKey(2, 123_456_789_012)
	request := func(key string) string {
		return "*4\r\n$14\r\nRL.TOKENBUCKET\r\n$16\r\n" + key + "\r\n$2\r\n10\r\n$2\r\n20\r\n"
	}
	require.Equal(t, request("key:000000000000")+request("key:000000000042")+request("key:123456789012"),
		string(p.encoded))
	p.setKey(2, 7)
	require.True(t, strings.HasSuffix(string(p.encoded), request("key:000000000007")), "nothing of the last key stays")
}
