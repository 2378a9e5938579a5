package persistence

import (
	"io"
	"runtime"
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

// pacedFS delays the writer of a table in proportion to the bytes written, and yields at each write.
type pacedFS struct{ vfs.FS }

func (p pacedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := p.FS.Create(name, c)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return f, err
	}
	return &pacedFile{File: f, courtesy: courtesy{from: time.Now()}}, nil
}

func (p pacedFS) Unwrap() vfs.FS { return p.FS }

// pacedFile delays the writer of a file. Only one goroutine may write it.
type pacedFile struct {
	vfs.File
	delay    delay
	courtesy courtesy
}

func (f *pacedFile) Write(b []byte) (int, error) {
	f.courtesy.yield()
	n, err := f.File.Write(b)
	if f.delay.add(n, paceBytesPerSecond) {
		f.courtesy.from = time.Now()
	}
	return n, err
}

// courtesy lets goroutines that wait for a processor go before a job, in the midst of its work. While all processors
// are busy, each yield may last until the scheduler takes a processor from a poller: 10 ms. So the job yields at most
// as long as it works, and takes at most twice its time.
type courtesy struct {
	worked, yielded time.Duration
	from            time.Time // when the job began, or went on after a yield or a sleep
}

func (c *courtesy) yield() {
	now := time.Now()
	c.worked += now.Sub(c.from)
	if c.yielded <= c.worked {
		runtime.Gosched()
		c.yielded += time.Since(now)
	}
	c.from = time.Now()
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

// add adds the time for n bytes at a rate. Once the sum reaches paceStep, it sleeps and returns true.
func (d *delay) add(n int, bytesPerSecond time.Duration) (slept bool) {
	*d += delay(time.Duration(n) * time.Second / bytesPerSecond)
	if *d < delay(paceStep) {
		return false
	}
	time.Sleep(time.Duration(*d))
	*d = 0
	return true
}

// spread pauses a job between its steps. Without pauses the job would occupy a processor for so long that decisions
// become noticeably slower.
type spread struct {
	over  time.Duration // bound of a job's time including pauses; 0: no pauses
	began time.Time     // start of the job
	from  time.Time     // start of the current step

	courtesy courtesy
}

// firstPauseRatio is the ratio of the first pause to the step before it. The ratio falls to zero as the time of the job
// runs out. The amount of work is not known in advance. With a constant ratio, the pauses of a large job could use up
// the time, and the work after that would run without any pause.
const firstPauseRatio = 3

func (s *spread) begin() {
	s.began = time.Now()
	s.from = s.began
	s.courtesy = courtesy{from: s.began}
}

// yield lets others go first, like courtesy.yield, while the job has time left.
func (s *spread) yield() {
	if time.Since(s.began) < s.over {
		s.courtesy.yield()
	}
}

// pause ends a step of the job and sleeps. With hurry it does not sleep.
func (s *spread) pause(hurry bool) {
	now := time.Now()
	if left := s.over - now.Sub(s.began); !hurry && left > 0 {
		share := float64(left) / float64(s.over)
		time.Sleep(min(time.Duration(firstPauseRatio*share*float64(now.Sub(s.from))), left))
	}
	s.from = time.Now()
	s.courtesy.from = s.from
}
