package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPipelineIsWhatRedisBenchmarkSends(t *testing.T) {
	p := newPipeline(Command{Args: []string{"RL.TOKENBUCKET", "{key}", "10", "20"}}, 3)
	p.setKey(1, 42)
	p.setKey(2, 123_456_789_012)
	request := func(key string) string {
		return "*4\r\n$14\r\nRL.TOKENBUCKET\r\n$16\r\n" + key + "\r\n$2\r\n10\r\n$2\r\n20\r\n"
	}
	require.Equal(t, request("key:000000000000")+request("key:000000000042")+request("key:123456789012"), string(p.requests))
	p.setKey(2, 7)
	require.True(t, strings.HasSuffix(string(p.requests), request("key:000000000007")), "nothing of the last key stays")
}
