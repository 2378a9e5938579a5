package persistence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Send returns an image as a stream for Receive, and its description. The stream has ImageInfo.Bytes bytes. The image
// stays until the stream is closed, even if newer images exist. The stream verifies the files by their checksums.
// Damage ends the process, because another node must not start from damaged data. Send returns ErrNoImage if no image
// has this name.
func (m *Images) Send(id string) (io.ReadCloser, ImageInfo, error) {
	meta, err := m.pin(id)
	if err != nil {
		return nil, ImageInfo{}, err
	}
	s := newImageStream(m.files(id), meta.files)
	s.must, s.release = m.must, func() error { return m.release(id) }
	return s, meta.info(), nil
}

// imageStream is an image being sent. It keeps one file open at a time.
type imageStream struct {
	must    func(error) error // receives every read failure
	release func() error      // called when the stream is closed
	// unmeasured means that the checksums of the files are not known and are computed while sending.
	unmeasured bool

	from   directory
	files  []imageFile // the open file, if any, and the files that follow
	small  []byte      // bytes to send before anything else
	open   vfs.File    // nil between two files
	left   int64       // bytes of the open file still to be sent
	sum    hash.Hash32
	closed bool
}

func newImageStream(from directory, files []imageFile) *imageStream {
	return &imageStream{from: from, files: files, small: encodeStreamHead(streamVersion, uint32(len(files)))}
}

func (s *imageStream) Read(p []byte) (int, error) {
	for !s.closed {
		switch {
		case len(p) == 0:
			return 0, nil
		case len(s.small) > 0:
			n := copy(p, s.small)
			s.small = s.small[n:]
			return n, nil
		case s.open != nil && s.left > 0:
			return s.content(p[:min(int64(len(p)), s.left)])
		case s.open != nil:
			if err := s.endFile(); err != nil {
				return 0, s.must(err)
			}
		case len(s.files) > 0:
			if err := s.beginFile(); err != nil {
				return 0, s.must(err)
			}
		default:
			return 0, io.EOF
		}
	}
	return 0, ErrClosed
}

func (s *imageStream) content(p []byte) (int, error) {
	n, err := s.open.Read(p)
	_, _ = s.sum.Write(p[:n])
	s.left -= int64(n)
	if n > 0 {
		return n, nil
	}
	if err == io.EOF || err == nil {
		err = fmt.Errorf("%w (%s ends %d bytes early)", ErrDamaged, s.files[0].name, s.left)
	}
	return 0, s.must(err)
}

func (s *imageStream) beginFile() (err error) {
	f := s.files[0]
	if s.open, err = s.from.fs.Open(s.from.file(f.name), vfs.SequentialReadsOption); err != nil {
		s.open = nil
		return err
	}
	s.small, s.left, s.sum = f.appendHead(s.small[:0]), f.size, crc32.New(castagnoli)
	_, _ = s.sum.Write(s.small)
	return nil
}

func (s *imageStream) endFile() error {
	if !s.unmeasured && s.sum.Sum32() != s.files[0].sum {
		return fmt.Errorf("%w (%s is not the file that was written)", ErrDamaged, s.files[0].name)
	}
	s.small = binary.LittleEndian.AppendUint32(s.small[:0], s.sum.Sum32())
	err := s.open.Close()
	s.open, s.files = nil, s.files[1:]
	return err
}

// Close ends the stream at any position.
func (s *imageStream) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	var err error
	if s.open != nil {
		err = s.open.Close()
	}
	return errors.Join(err, s.release())
}
