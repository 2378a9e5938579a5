package server

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/resp/resptest"
	"github.com/weir-project/weir/server/servertest"
)

// TestLongPipelineInBoundedMemory checks that the heap does not grow while a client sends a very long pipeline and
// reads the replies. WEIRTEST_LONG_PIPELINE=1 sends 1 GiB.
func TestLongPipelineInBoundedMemory(t *testing.T) {
	const most = 16 << 20 // bytes above the level before, including garbage
	total := 64 << 20
	if os.Getenv("WEIRTEST_LONG_PIPELINE") != "" {
		total = 1 << 30
	}
	srv := startWire(t, Config{}, nil)
	p := srv.dial(t)
	require.NoError(t, p.SetDeadline(time.Now().Add(10*time.Minute)))
	command := resptest.Multibulk("RL.TOKENBUCKET", "key:000000000001", "10/s", "10")
	chunk := strings.Repeat(command, 1000)
	chunks := total / len(chunk)

	before := liveBytes()
	go func() {
		for range chunks {
			if _, err := io.WriteString(p, chunk); err != nil {
				return
			}
		}
		_, _ = io.WriteString(p, "QUIT\r\n")
	}()
	peak := before
	answers := make([]byte, 1000*len(decisionAnswer))
	for i := range chunks {
		n, err := io.ReadFull(p.In, answers)
		require.NoError(t, err, n)
		if i%(chunks/20) == 0 {
			peak = max(peak, liveBytes())
		}
	}
	assert.Equal(t, strings.Repeat(decisionAnswer, 1000), string(answers))
	p.Expect("+OK\r\n")
	t.Logf("%d MiB of pipeline, at most %d KiB held", total>>20, (peak-before)>>10)
	assert.Less(t, peak-before, int64(most))
}

// TestUnreadRepliesHoldTheSenderBack checks back-pressure: the server stops reading from a client that does not read
// its replies, and does not buffer for it.
func TestUnreadRepliesHoldTheSenderBack(t *testing.T) {
	srv := startWire(t, Config{WriteTimeout: time.Minute}, nil)
	p := srv.dial(t)
	before := liveBytes()
	blocked := make(chan struct{})
	go func() {
		defer close(blocked)
		chunk := strings.Repeat(resptest.Multibulk("ECHO", strings.Repeat("x", 30_000)), 10)
		for {
			if _, err := io.WriteString(p, chunk); err != nil {
				return
			}
		}
	}()
	last := int64(-1)
	require.Eventually(t, func() bool {
		read := srv.Wire.InputBytes.Load()
		still := read > 0 && read == last
		last = read
		return still
	}, servertest.Patience, 200*time.Millisecond)
	assert.Less(t, liveBytes()-before, int64(8<<20))
	srv.answers(t)
	require.NoError(t, p.Close())
	<-blocked
}
