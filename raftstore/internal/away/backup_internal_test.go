package away

import (
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/calls"
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

// TestBackupsForOtherNodes checks that a backup that begins slowly delays nothing else, that a node makes a few of a
// group at the same time, and that it closes each: at its end, when its reader says so, when nobody reads it any more,
// and when the node closes.
func TestBackupsForOtherNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Backups
		closed := 0
		slow, quick := make(chan struct{}), make(chan struct{})
		close(quick)
		call := func(id uint64, read int, what byte) ([]byte, error) {
			body := binary.LittleEndian.AppendUint64(nil, id)
			status, part := l.Answer(append(binary.LittleEndian.AppendUint64(body, uint64(read)), what))
			return part, calls.OutcomeOf(status, part)
		}
		begun := make(chan uint64)
		go func() {
			id, _, err := l.begin(1, slowArchive{slow, &closed})
			require.NoError(t, err)
			begun <- id
		}()
		synctest.Wait()
		l.Expire() // does not wait
		first, bytes, err := l.begin(1, slowArchive{quick, &closed})
		require.NoError(t, err)
		require.EqualValues(t, 6, bytes)
		_, _, err = l.begin(1, slowArchive{quick, &closed})
		require.ErrorIs(t, err, limiter.ErrOverloaded)
		other, _, err := l.begin(2, slowArchive{quick, &closed})
		require.NoError(t, err, "another group has backups of its own")
		close(slow)
		last := <-begun

		part, err := call(first, 0, readPart)
		require.NoError(t, err)
		require.Equal(t, "backup", string(part))
		_, err = call(first, 0, readPart)
		require.ErrorContains(t, err, "not read any more", "a part is not read twice")
		part, err = call(first, 6, readPart)
		require.NoError(t, err)
		require.Empty(t, part)
		require.Equal(t, 1, closed, "read to its end")

		time.Sleep(keepFor / 2)
		_, err = call(last, 0, keepOpen)
		require.NoError(t, err)
		time.Sleep(keepFor / 2)
		l.Expire()
		require.Equal(t, 2, closed, "nobody has called about the one of the other group")
		_, err = call(other, 0, readPart)
		require.Error(t, err)
		_, err = call(last, 0, endBackup)
		require.NoError(t, err)
		require.Equal(t, 3, closed)
		_, _, err = l.begin(1, slowArchive{quick, &closed})
		require.NoError(t, err)
		l.Close()
		require.Equal(t, 4, closed)
		_, _, err = l.begin(1, slowArchive{quick, &closed})
		require.ErrorIs(t, err, limiter.ErrTryAgain)
		require.Equal(t, 5, closed)
	})
}
