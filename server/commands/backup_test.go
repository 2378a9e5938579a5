package commands

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/servertest"
)

// archive is a limiter with a backup.
type archive struct {
	*servertest.TableLimiter
	content string
	fail    error
	open    int
}

func (a *archive) Backup() (*limiter.Backup, error) {
	if a.fail != nil {
		return nil, a.fail
	}
	a.open++
	return &limiter.Backup{ReadCloser: &archived{strings.NewReader(a.content), a}, Bytes: int64(len(a.content))}, nil
}

type archived struct {
	*strings.Reader
	of *archive
}

func (a *archived) Close() error { a.of.open--; return nil }

func TestBackup(t *testing.T) {
	srv := newTestServer(t, Config{})
	a := &archive{TableLimiter: srv.lim, content: strings.Repeat("weir", backupChunk/2+1)}
	srv.Shared.Limiter = limiter.NewDatabases(a)
	c, other := srv.client(t), srv.client(t)
	require.Equal(t, "-"+string(errNoBackup), c.say("WEIR.BACKUP NEXT"))
	require.Equal(t, "524292", c.say("WEIR.BACKUP START"))
	require.Equal(t, "-"+string(errBackingUp), other.say("WEIR.BACKUP START"))
	require.Equal(t, "-"+string(errNoBackup), other.say("WEIR.BACKUP NEXT"))
	var all string
	for _, want := range []int{backupChunk, backupChunk, 4} {
		piece := c.say("WEIR.BACKUP NEXT")
		require.Len(t, piece, want)
		all += piece
	}
	require.Equal(t, a.content, all)
	require.Equal(t, "$-1\r\n", c.raw("WEIR.BACKUP", "NEXT"))
	require.Zero(t, a.open)
	require.Equal(t, "-"+string(errNoBackup), c.say("WEIR.BACKUP NEXT"))

	require.Equal(t, "524292", c.say("WEIR.BACKUP START"))
	require.Equal(t, "524292", c.say("WEIR.BACKUP START"), "START must begin again")
	require.Equal(t, 1, a.open)
	require.Equal(t, "OK", other.say("WEIR.BACKUP STOP"), "STOP on another connection must have no effect")
	require.Equal(t, 1, a.open)
	c.sess.Close()
	require.Zero(t, a.open, "a backup must end with its connection")

	require.Equal(t, "524292", other.say("WEIR.BACKUP START"))
	require.Equal(t, "OK", other.say("WEIR.BACKUP STOP"))
	require.Zero(t, a.open)
}

func TestNoBackup(t *testing.T) {
	srv := newTestServer(t, Config{})
	c := srv.client(t)
	assert.Equal(t, "-"+string(errCannotBackUp), c.say("WEIR.BACKUP START"))
	a := &archive{TableLimiter: srv.lim, fail: errors.New("disk on fire")}
	srv.Shared.Limiter = limiter.NewDatabases(a)
	assert.Equal(t, "-ERR no backup: disk on fire", c.say("WEIR.BACKUP START"))
	a.fail = limiter.ErrNoDisk
	assert.Equal(t, "-ERR "+limiter.ErrNoDisk.Error(), c.say("WEIR.BACKUP START"))
}

// slowArchive takes long to begin a backup.
type slowArchive struct {
	*archive
	begun, proceed chan struct{}
}

func (a slowArchive) Backup() (*limiter.Backup, error) {
	close(a.begun)
	<-a.proceed
	return a.archive.Backup()
}

// TestNobodyWaitsForABackupToBegin checks that no other connection waits while a backup begins, which may take long.
func TestNobodyWaitsForABackupToBegin(t *testing.T) {
	srv := newTestServer(t, Config{})
	a := slowArchive{&archive{TableLimiter: srv.lim, content: "weir"}, make(chan struct{}), make(chan struct{})}
	srv.Shared.Limiter = limiter.NewDatabases(a)
	c, other := srv.client(t), srv.client(t)
	answer := make(chan string)
	go func() { answer <- c.say("WEIR.BACKUP START") }()
	<-a.begun
	assert.Equal(t, "-"+string(errBackingUp), other.say("WEIR.BACKUP START"))
	assert.Equal(t, "-"+string(errNoBackup), other.say("WEIR.BACKUP NEXT"))
	other.sess.Close()
	close(a.proceed)
	require.Equal(t, "4", <-answer)
	require.Equal(t, "weir", c.say("WEIR.BACKUP NEXT"))
}
