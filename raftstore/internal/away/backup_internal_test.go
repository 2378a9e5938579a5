package away

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
)

// slowArchive is a group whose backup begins when the channel is closed.
type slowArchive struct {
	begin  chan struct{}
	closed *int
}

func (s slowArchive) Backup() (*limiter.Backup, error) {
	<-s.begin
	return &limiter.Backup{ReadCloser: countedClose{strings.NewReader("backup"), s.closed}, Bytes: 6}, nil
}

type countedClose struct {
	io.Reader
	closed *int
}

func (c countedClose) Close() error { *c.closed++; return nil }

// TestBackupsForOtherNodes checks that a backup that begins slowly delays nothing else, that a node makes a few at the
// same time, and that it closes each: at its end, when nobody reads it any more, and when the node closes.
func TestBackupsForOtherNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lent
		closed := 0
		slow, quick := make(chan struct{}), make(chan struct{})
		close(quick)
		begun := make(chan uint64)
		go func() {
			id, _, err := l.begin(slowArchive{slow, &closed})
			require.NoError(t, err)
			begun <- id
		}()
		synctest.Wait()
		l.Expire() // does not wait
		var ids []uint64
		for range maxLent - 1 {
			id, bytes, err := l.begin(slowArchive{quick, &closed})
			require.NoError(t, err)
			require.EqualValues(t, 6, bytes)
			ids = append(ids, id)
		}
		_, _, err := l.begin(slowArchive{quick, &closed})
		require.ErrorIs(t, err, limiter.ErrOverloaded)
		close(slow)
		last := <-begun

		for _, want := range []string{"backup", ""} {
			part, err := l.part(ids[0])
			require.NoError(t, err)
			require.Equal(t, want, string(part))
		}
		require.Equal(t, 1, closed, "read to its end")
		_, err = l.part(ids[0])
		require.ErrorContains(t, err, "not read any more")

		time.Sleep(lentFor / 2)
		_, err = l.part(last)
		require.NoError(t, err)
		time.Sleep(lentFor / 2)
		l.Expire()
		require.Equal(t, maxLent-1, closed, "nobody reads these")
		l.Close()
		require.Equal(t, maxLent, closed)
		_, _, err = l.begin(slowArchive{quick, &closed})
		require.ErrorIs(t, err, limiter.ErrTryAgain)
		require.Equal(t, maxLent+1, closed)
	})
}
