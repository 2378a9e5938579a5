package peer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzUnseal checks that unseal never panics, that its names are no longer than the limit, and that the bytes of an
// envelope are its only encoding.
func FuzzUnseal(f *testing.F) {
	e := envelope{group: 300, from: Identity{NodeID: "a", ClusterID: "0123456789abcdef"}, to: "b~1k2j3h"}
	whole := e.seal([]byte("a message"))
	f.Add(whole)
	f.Add(whole[:len(whole)-len("a message")-1])
	f.Add([]byte{0, 0, MaxNameLen + 1})
	f.Add((&envelope{}).seal(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, message, err := unseal(b)
		if err != nil {
			require.ErrorIs(t, err, errEnvelope)
			return
		}
		for _, name := range []string{e.from.NodeID, e.from.ClusterID, e.to} {
			require.LessOrEqual(t, len(name), MaxNameLen)
		}
		require.Equal(t, b, e.seal(message))
		require.Equal(t, len(message), cap(message), "an append must not write into the frame")
	})
}
