package persistence

import (
	"io"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// paceBytesPerSecond bounds the rate at which Pebble's tables are written while decisions run. Merges compete with
	// decisions for processor and disk, and are not urgent. The rate is several times the maximum rate of changes.
	paceBytesPerSecond = 32 << 20
	// readBytesPerSecond bounds the rate at which written files are read, which costs less.
	readBytesPerSecond = 128 << 20
	// paceStep is the shortest pause.
	paceStep = time.Millisecond
)

// pacedFS delays the writer of a table in proportion to the bytes written.
type pacedFS struct{ vfs.FS }

func (p pacedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := p.FS.Create(name, c)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return f, err
	}
	return &pacedFile{File: f}, nil
}

func (p pacedFS) Unwrap() vfs.FS { return p.FS }

// pacedFile is written by one goroutine.
type pacedFile struct {
	vfs.File
	delay delay
}

func (f *pacedFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.delay.add(n, paceBytesPerSecond)
	return n, err
}

// pacedBy delays a reader in proportion to the bytes read.
func pacedBy(r io.Reader) io.Reader { return &pacedReader{from: r} }

type pacedReader struct {
	from  io.Reader
	delay delay
}

func (r *pacedReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	r.delay.add(n, readBytesPerSecond)
	return n, err
}

// delay is the accumulated pause for transferred bytes.
type delay time.Duration

// add adds the pause for n bytes, and sleeps once the sum reaches paceStep.
func (d *delay) add(n int, bytesPerSecond time.Duration) {
	*d += delay(time.Duration(n) * time.Second / bytesPerSecond)
	if *d >= delay(paceStep) {
		time.Sleep(time.Duration(*d))
		*d = 0
	}
}

// spread pauses a job between its pieces. Without pauses the job would occupy a processor for so long that decisions
// become noticeably slower.
type spread struct {
	over  time.Duration // bound of a job's time including pauses; 0: no pauses
	began time.Time     // start of the job
	from  time.Time     // start of the current piece
}

// firstPauseRatio is the initial ratio of a pause to the preceding piece. Pauses become shorter as the time of the job
// runs out. The amount of work is not known in advance, and work without pauses at the end slows decisions as well.
const firstPauseRatio = 3

func (s *spread) begin() {
	s.began = time.Now()
	s.from = s.began
}

// pause ends a piece of the job. hurry omits the pause.
func (s *spread) pause(hurry bool) {
	now := time.Now()
	if left := s.over - now.Sub(s.began); !hurry && left > 0 {
		share := float64(left) / float64(s.over)
		time.Sleep(min(time.Duration(firstPauseRatio*share*float64(now.Sub(s.from))), left))
	}
	s.from = time.Now()
}
