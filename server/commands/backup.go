package commands

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/resp"
)

const (
	// backupChunk is the size of one reply of a backup: enough to keep a network busy, and little compared with the
	// bytes that a connection may use.
	backupChunk = 256 << 10
	// backupPatience is how long a backup waits for its reader. A backup keeps files that the server would delete
	// otherwise, so a backup without a reader must end.
	backupPatience = time.Minute
)

func weirBackupCommand() *command {
	const flags = "admin noscript no_multi"
	sub := func(name, summary string, run func(*Session, [][]byte)) *command {
		return &command{name: name, arity: 2, summary: summary, flags: flags, run: run}
	}
	start := sub("START", "Save what changed, and begin a backup on this connection", runBackupStart)
	start.reply = "How many bytes it has."
	next := sub("NEXT", "Read the next piece of the backup", runBackupNext)
	next.reply = "Up to 256 KiB; nil after the last."
	return &command{
		name: "WEIR.BACKUP", arity: -2, group: groupServer, flags: flags,
		summary: "Copy the whole state of this node while it runs; `weir backup` makes a file of it",
		details: "Every node can be asked, one backup at a time. It ends with its connection, and when nobody reads " +
			"from it for a minute. With several Raft groups it contains all of them.",
		subs: []*command{start, next, sub("STOP", "End the backup before its end", runBackupStop)},
	}
}

// backupSlot holds at most one backup.
type backupSlot struct {
	// owner is nil while no backup is under way. Every session that closes reads it, and must not wait for the backup
	// of another session.
	owner atomic.Pointer[Session]

	mu   sync.Mutex // held while a backup begins, which may take long, and during each read
	file *limiter.Backup
	idle *time.Timer // ends the backup
}

// begin makes s the owner of the backup that open returns. An earlier backup of s ends. begin returns errBackingUp
// while another session has a backup.
func (b *backupSlot) begin(s *Session, open func() (*limiter.Backup, error)) (bytes int64, err error) {
	if b.owner.Load() != s && !b.owner.CompareAndSwap(nil, s) {
		return 0, errBackingUp
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closeFile()
	if b.file, err = open(); err != nil {
		b.file = nil
		b.owner.Store(nil)
		return 0, err
	}
	bytes = b.file.Bytes
	b.owner.Store(s) // an earlier backup of s may have ended, and cleared owner, while begin waited for mu
	b.idle = time.AfterFunc(backupPatience, func() { b.end(s) })
	return bytes, nil
}

// read reads up to len(p) bytes. It returns io.EOF after the last byte.
func (b *backupSlot) read(s *Session, p []byte) (n int, err error) {
	if b.owner.Load() != s {
		return 0, errNoBackup
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil { // the backup ended while read waited for mu
		return 0, errNoBackup
	}
	b.idle.Reset(backupPatience)
	n, err = io.ReadFull(b.file, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	if err != nil {
		b.closeFile()
		b.owner.Store(nil)
	}
	return n, err
}

// end ends the backup of s, if s has one.
func (b *backupSlot) end(s *Session) {
	if b.owner.Load() != s {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.owner.Load() == s {
		b.closeFile()
		b.owner.Store(nil)
	}
}

// closeFile closes the backup, if one is open. The caller holds mu.
func (b *backupSlot) closeFile() {
	if b.file == nil {
		return
	}
	b.idle.Stop()
	_ = b.file.Close() // an error has no effect: the file was only read
	b.file, b.idle = nil, nil
}

func runBackupStart(s *Session, _ [][]byte) {
	archiver, ok := s.srv.Limiter.Backend().(limiter.Archiver)
	if !ok {
		s.fail(errCannotBackUp)
		return
	}
	bytes, err := s.srv.backup.begin(s, archiver.Backup)
	if err != nil {
		s.fail(backupError(err))
		return
	}
	s.srv.Log.Info("a client requested a backup", "bytes", bytes, "addr", s.about.Addr)
	s.Int(bytes)
}

func runBackupNext(s *Session, _ [][]byte) {
	chunk := make([]byte, backupChunk)
	n, err := s.srv.backup.read(s, chunk)
	switch {
	case errors.Is(err, io.EOF):
		s.Null()
	case err != nil:
		s.fail(backupError(err))
	default:
		s.BulkBytes(chunk[:n])
	}
}

func runBackupStop(s *Session, _ [][]byte) {
	s.srv.backup.end(s)
	s.OK()
}

// backupError returns the reply when a backup cannot begin or continue. It gives the reason, because only
// administrators send this command.
func backupError(err error) error {
	var known resp.Error
	if errors.As(err, &known) || errors.Is(err, limiter.ErrNoDisk) {
		return err
	}
	return resp.Error("ERR no backup: " + err.Error())
}
