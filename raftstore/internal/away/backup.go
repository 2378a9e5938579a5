package away

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/weir-project/weir/limiter"
)

const (
	// maxLent bounds the backups that a node reads for others at the same time. Each keeps files of the data directory.
	maxLent = 4
	// lentFor is how long such a backup is kept without a question.
	lentFor = time.Minute
	// backupFor bounds the wait for a backup that begins, and for each of its parts. A snapshot of a large group takes
	// minutes.
	backupFor = 10 * time.Minute
	// backupPartBytes is the length of a part.
	backupPartBytes = 1 << 20
)

// Lent are the backups that other nodes read from this one.
type Lent struct {
	mu      sync.Mutex
	next    uint64
	opening int  // backups that are being made
	closed  bool // the node closes: every backup ends after its part
	backups []*lentBackup
}

type lentBackup struct {
	*limiter.Backup
	id      uint64
	used    time.Time
	reading bool
}

// begin opens a backup for another node. The snapshot for it may take minutes.
func (l *Lent) begin(g limiter.Archiver) (id uint64, bytes int64, err error) {
	l.mu.Lock()
	full := len(l.backups)+l.opening >= maxLent
	if !full {
		l.opening++
	}
	l.mu.Unlock()
	if full {
		return 0, 0, limiter.ErrOverloaded
	}
	b, err := g.Backup()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opening--
	if err == nil && l.closed {
		err = errors.Join(limiter.ErrTryAgain, b.Close())
	}
	if err != nil {
		return 0, 0, err
	}
	l.next++
	l.backups = append(l.backups, &lentBackup{Backup: b, id: l.next, used: time.Now()})
	return l.next, b.Bytes, nil
}

// take returns a backup that no other call reads, until put.
func (l *Lent) take(id uint64) (*lentBackup, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.IndexFunc(l.backups, func(b *lentBackup) bool { return b.id == id && !b.reading })
	if at < 0 {
		return nil, errors.New("this backup is not read any more")
	}
	l.backups[at].reading = true
	return l.backups[at], nil
}

// put gives a backup back. One that has ended is closed.
func (l *Lent) put(b *lentBackup, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.reading, b.used = false, time.Now(); ended || l.closed {
		l.backups = slices.DeleteFunc(l.backups, func(other *lentBackup) bool { return other == b })
		b.Close()
	}
}

// part reads the next part of a backup. The last one is empty.
func (l *Lent) part(id uint64) ([]byte, error) {
	b, err := l.take(id)
	if err != nil {
		return nil, err
	}
	part := make([]byte, backupPartBytes)
	n, err := io.ReadFull(b, part)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	l.put(b, n == 0 || err != nil)
	return part[:n], err
}

// Expire closes the backups that nobody reads any more.
func (l *Lent) Expire() { l.end(lentFor) }

// Close closes all backups.
func (l *Lent) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.end(0)
}

// end closes the backups that nobody has read for a time. One that is being read ends after its part.
func (l *Lent) end(unused time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backups = slices.DeleteFunc(l.backups, func(b *lentBackup) bool {
		over := !b.reading && time.Since(b.used) >= unused
		if over {
			b.Close()
		}
		return over
	})
}

// Backup returns the state of the group, as one of its nodes has it; see raftstore.Node.Backup.
func (g *Group) Backup() (*limiter.Backup, error) {
	for _, addr := range g.hosts() {
		got, err := g.readFrom(addr, &question{What: askBackup})
		if errors.Is(err, limiter.ErrClusterDown) {
			continue // it has no replica
		}
		if err != nil {
			return nil, err
		}
		return &limiter.Backup{ReadCloser: &awayBackup{from: g, addr: addr, id: got.Next}, Bytes: got.Number}, nil
	}
	return nil, limiter.ErrClusterDown
}

// readFrom asks one node.
func (g *Group) readFrom(addr string, q *question) (*answer, error) {
	return g.askWith(q, backupFor, func(ctx context.Context, payload []byte) (byte, []byte, error) {
		return g.config.Network.Call(ctx, addr, payload)
	})
}

// awayBackup is the stream of a backup that another node reads.
type awayBackup struct {
	from *Group
	addr string
	id   uint64
	part []byte
	end  bool
}

func (b *awayBackup) Read(p []byte) (int, error) {
	if len(b.part) == 0 && !b.end {
		got, err := b.from.readFrom(b.addr, &question{What: askBackupPart, Cursor: b.id})
		if err != nil {
			return 0, err
		}
		b.part, b.end = got.Out, len(got.Out) == 0
	}
	if b.end {
		return 0, io.EOF
	}
	n := copy(p, b.part)
	b.part = b.part[n:]
	return n, nil
}

// Close leaves the rest to Lent.Expire.
func (b *awayBackup) Close() error { return nil }
