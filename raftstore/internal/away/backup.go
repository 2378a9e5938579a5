package away

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

const (
	// maxBackups bounds the backups of one group that other nodes read at the same time. Each keeps files of the data
	// directory. A backup of a cluster has one of each group open.
	maxBackups = 2
	// keepFor is how long a backup is kept without a call about it. Its reader makes one each third of this time,
	// because it may read the backups of other groups first.
	keepFor = time.Minute
	// backupFor bounds the wait for a backup that begins. A snapshot of a large group takes minutes.
	backupFor = 10 * time.Minute
	// backupPartBytes is the length of a part.
	backupPartBytes = 1 << 20
)

// What a call about a backup asks for.
const (
	readPart byte = iota + 1
	keepOpen
	endBackup
)

// backupCall is the length of such a call: the id of the backup, the bytes that were read before, and what it asks for.
const backupCall = 8 + 8 + 1

// Backups are the backups of groups of this node that other nodes read.
type Backups struct {
	mu     sync.Mutex
	making map[int]int // by group: backups that begin
	closed bool        // the node closes: every backup ends after its part
	open   []*openBackup
}

type openBackup struct {
	*limiter.Backup
	id, read uint64
	group    int
	used     time.Time
	reading  bool
}

// begin opens a backup for another node. The snapshot for it may take minutes.
func (l *Backups) begin(group int, g limiter.Archiver) (id uint64, bytes int64, err error) {
	if !l.admit(group) {
		return 0, 0, limiter.ErrOverloaded
	}
	b, err := g.Backup()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.making[group]--
	if err == nil && l.closed {
		err = errors.Join(limiter.ErrTryAgain, b.Close())
	}
	if err != nil {
		return 0, 0, err
	}
	id = rand.Uint64() // a reader may outlive the process
	l.open = append(l.open, &openBackup{Backup: b, id: id, group: group, used: time.Now()})
	return id, b.Bytes, nil
}

// admit counts a backup that begins, or returns false if too many of its group are open.
func (l *Backups) admit(group int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.making[group]
	for _, b := range l.open {
		if b.group == group {
			of++
		}
	}
	if of >= maxBackups {
		return false
	}
	if l.making == nil {
		l.making = map[int]int{}
	}
	l.making[group]++
	return true
}

// Answer answers a call about a backup that is open.
func (l *Backups) Answer(body []byte) (status byte, said []byte) {
	if len(body) != backupCall {
		return calls.Refused, []byte("this version of weir does not know this call")
	}
	b, err := l.take(binary.LittleEndian.Uint64(body), binary.LittleEndian.Uint64(body[8:]))
	if err != nil {
		return calls.Reply(nil, err)
	}
	var part []byte
	end := true
	switch body[16] {
	case readPart:
		part, err = b.part()
		end = len(part) == 0 || err != nil
	case keepOpen:
		end = false
	}
	l.put(b, end)
	return calls.Reply(part, err)
}

// take returns a backup of which so many bytes were read, and that no other call reads, until put.
func (l *Backups) take(id, read uint64) (*openBackup, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.IndexFunc(l.open, func(b *openBackup) bool { return b.id == id && b.read == read && !b.reading })
	if at < 0 {
		return nil, errors.New("this backup is not read any more")
	}
	l.open[at].reading = true
	return l.open[at], nil
}

// put gives a backup back. One that has ended is closed.
func (l *Backups) put(b *openBackup, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.reading, b.used = false, time.Now(); ended || l.closed {
		l.open = slices.DeleteFunc(l.open, func(other *openBackup) bool { return other == b })
		b.Close()
	}
}

// part reads the next part. The last one is empty.
func (b *openBackup) part() ([]byte, error) {
	part := make([]byte, backupPartBytes)
	n, err := io.ReadFull(b, part)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	b.read += uint64(n)
	return part[:n], err
}

// Expire closes the backups that nobody reads any more.
func (l *Backups) Expire() { l.end(keepFor) }

// Close closes all backups.
func (l *Backups) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.end(0)
}

// end closes the backups about which no call was made for a time. One that is being read ends after its part.
func (l *Backups) end(unused time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = slices.DeleteFunc(l.open, func(b *openBackup) bool {
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
		got, err := g.askWith(&question{What: askBackup}, backupFor, func(ctx context.Context, payload []byte) (
			byte, []byte, error,
		) {
			return g.config.Network.Call(ctx, addr, payload)
		})
		if errors.Is(err, limiter.ErrClusterDown) {
			continue // it has no replica
		}
		if err != nil {
			return nil, err
		}
		b := &remoteBackup{of: g, addr: addr, id: got.Next, bytes: uint64(got.Number), closed: make(chan struct{})}
		g.config.Tasks.Go(b.keep)
		return &limiter.Backup{ReadCloser: b, Bytes: got.Number}, nil
	}
	return nil, limiter.ErrClusterDown
}

// remoteBackup is the stream of a backup that another node reads.
type remoteBackup struct {
	of     *Group
	addr   string
	id     uint64
	closed chan struct{}
	once   sync.Once

	mu          sync.Mutex // held during a call about the backup
	bytes, read uint64
	part        []byte
}

// call makes a call about the backup.
func (b *remoteBackup) call(what byte) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	body := binary.LittleEndian.AppendUint64(Head(b.of.config.Group, calls.Backup), b.id)
	body = append(binary.LittleEndian.AppendUint64(body, b.read), what)
	ctx, cancel := context.WithTimeout(b.of.config.Life, timers.AdminTimeout)
	defer cancel()
	status, part, err := b.of.config.Network.Call(ctx, b.addr, body)
	if err == nil {
		err = calls.OutcomeOf(status, part)
	}
	if err == nil && what == readPart {
		b.read += uint64(len(part))
	}
	return part, err
}

// Read reads what follows, part by part.
func (b *remoteBackup) Read(p []byte) (int, error) {
	if len(b.part) == 0 {
		var err error
		switch b.part, err = b.call(readPart); {
		case err != nil:
			return 0, err
		case len(b.part) == 0 && b.read < b.bytes:
			return 0, io.ErrUnexpectedEOF
		case len(b.part) == 0:
			return 0, io.EOF
		}
	}
	n := copy(p, b.part)
	b.part = b.part[n:]
	return n, nil
}

// keep keeps the backup open at the other node until Close.
func (b *remoteBackup) keep() {
	tick := time.NewTicker(keepFor / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_, _ = b.call(keepOpen) // Read returns an error later
		case <-b.closed:
			return
		case <-b.of.config.Life.Done():
			return
		}
	}
}

// Close ends the backup at the other node.
func (b *remoteBackup) Close() error {
	b.once.Do(func() {
		close(b.closed)
		_, _ = b.call(endBackup) // or Expire ends it
	})
	return nil
}
