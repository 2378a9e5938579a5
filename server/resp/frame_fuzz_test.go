package resp

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/weir-project/weir/server/resp/resptest"
)

// FuzzFrame checks that a stream which arrives whole gives the same commands as the same stream in random pieces, under
// the limits before and after AUTH. The commands must keep the limits, and have no more bytes than the stream.
func FuzzFrame(f *testing.F) {
	f.Add([]byte(resptest.Multibulk("RL.TOKENBUCKET", "k", "10", "20")+"PING\r\n"), []byte{3, 1, 4}, false)
	for _, c := range resptest.Hostile {
		if len(c.Stream) < 5000 {
			f.Add([]byte(c.Stream), []byte{1}, true)
		}
	}
	f.Fuzz(func(t *testing.T, stream, steps []byte, beforeAuth bool) {
		limits := OpenLimits(200)
		if beforeAuth {
			limits = PreAuthLimits()
		}
		whole := frameIn(limits, string(stream))
		require.Equal(t, whole, frameIn(limits, string(stream), cutsFrom(steps, len(stream))...))

		argBytes := 0
		for _, command := range whole.commands {
			require.NotEmpty(t, command)
			require.LessOrEqual(t, len(command), limits.args)
			for _, arg := range command {
				require.LessOrEqual(t, len(arg), limits.bulkBytes)
				argBytes += len(arg)
			}
		}
		require.LessOrEqual(t, argBytes+whole.left, len(stream))
		require.LessOrEqual(t, whole.left, max(maxInlineBytes, limits.commandBytes+maxHeaderBytes))
	})
}

// cutsFrom converts bytes to ascending offsets below n.
func cutsFrom(steps []byte, n int) (cuts []int) {
	at := 0
	for _, step := range steps {
		if at += int(step%32) + 1; at >= n {
			break
		}
		cuts = append(cuts, at)
	}
	return cuts
}
