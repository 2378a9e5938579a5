package tracing

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSeldom checks that a collector which is down for ten minutes gets ten lines in the log, one a minute.
func TestSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		complain := seldom(time.Minute)
		said := 0
		for range 10 * 60 {
			if complain() {
				said++
			}
			time.Sleep(time.Second)
		}
		require.Equal(t, 10, said)
	})
}
