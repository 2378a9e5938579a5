package persistence

import (
	"io"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// paceBytesPerSecond bounds the rate at which Pebble's tables are written while decisions run. Merges compete with
	// decisions for processor and disk, and are not urgent. The rate is several times the greatest rate of changes, so
	// merges still keep up.
	paceBytesPerSecond = 32 << 20
	// readBytesPerSecond bounds the rate at which written files are read for their checksums. It is higher, because
	// reading costs less.
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

// pacedFile delays the writer of a file. Only one goroutine may write it.
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

// delay is the time to sleep for bytes that were transferred since the last sleep.
type delay time.Duration

// add adds the time for n bytes at a rate, and sleeps once the sum reaches paceStep.
func (d *delay) add(n int, bytesPerSecond time.Duration) {
	*d += delay(time.Duration(n) * time.Second / bytesPerSecond)
	if *d >= delay(paceStep) {
		time.Sleep(time.Duration(*d))
		*d = 0
	}
}

// spread pauses a job between its steps. Without pauses the job would occupy a processor for so long that decisions
// become noticeably slower.
type spread struct {
	over  time.Duration // bound of a job's time including pauses; 0: no pauses
	began time.Time     // start of the job
	from  time.Time     // start of the current step
}

// firstPauseRatio is the ratio of the first pause to the step before it. The ratio falls to zero as the time of the job
// runs out. The amount of work is not known in advance. With a constant ratio, the pauses of a large job could use up
// the time, and the work after that would run without any pause.
const firstPauseRatio = 3

func (s *spread) begin() {
	s.began = time.Now()
	s.from = s.began
}

// pause ends a step of the job and sleeps. With hurry it does not sleep.
func (s *spread) pause(hurry bool) {
	now := time.Now()
	if left := s.over - now.Sub(s.began); !hurry && left > 0 {
		share := float64(left) / float64(s.over)
		time.Sleep(min(time.Duration(firstPauseRatio*share*float64(now.Sub(s.from))), left))
	}
	s.from = time.Now()
}
