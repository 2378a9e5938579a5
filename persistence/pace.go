package persistence

import (
	"io"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// paceBytesPerSecond is how fast Pebble's tables are written while decisions go
	// on: what merges them competes with decisions for processor and disk, and has no
	// reason to hurry. It is several times as fast as changes can come.
	paceBytesPerSecond = 32 << 20
	// readBytesPerSecond is the same for reading what was written: that takes less.
	readBytesPerSecond = 128 << 20
	// paceStep is the shortest rest worth taking.
	paceStep = time.Millisecond
)

// pacedFS makes whoever writes a table rest in proportion to what was written.
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
	owed rest
}

func (f *pacedFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.owed.pay(n, paceBytesPerSecond)
	return n, err
}

// restfully makes whoever reads rest in proportion to what was read.
func restfully(r io.Reader) io.Reader { return &pacedReader{from: r} }

type pacedReader struct {
	from io.Reader
	owed rest
}

func (r *pacedReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	r.owed.pay(n, readBytesPerSecond)
	return n, err
}

// rest is what is owed for bytes that were moved.
type rest time.Duration

// pay adds what n bytes cost and rests when that is worth it.
func (owed *rest) pay(n int, bytesPerSecond time.Duration) {
	*owed += rest(time.Duration(n) * time.Second / bytesPerSecond)
	if *owed >= rest(paceStep) {
		time.Sleep(time.Duration(*owed))
		*owed = 0
	}
}

// spread makes a job rest between its pieces: in one go it would take a processor from
// those who decide, for so long that they would feel it.
type spread struct {
	over  time.Duration // how long a job may take with its rests; 0: no rests
	began time.Time     // when this one did
	from  time.Time     // when the present piece began
}

// restsAtFirst is how many times as long as a piece the rest behind it is. Rests get
// shorter as the time of the job runs out: how much there is to do is not known before,
// and what is done without rests at the end is felt like a job without any.
const restsAtFirst = 3

func (s *spread) begin() {
	s.began = time.Now()
	s.from = s.began
}

// piece ends a piece of the job; hurry leaves out the rest.
func (s *spread) piece(hurry bool) {
	now := time.Now()
	if left := s.over - now.Sub(s.began); !hurry && left > 0 {
		share := float64(left) / float64(s.over)
		time.Sleep(min(time.Duration(restsAtFirst*share*float64(now.Sub(s.from))), left))
	}
	s.from = time.Now()
}
