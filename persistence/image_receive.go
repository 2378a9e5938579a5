package persistence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Receive starts receiving an image from another node, whose Send returned a stream. The caller writes that stream to
// the Incoming, in pieces of any size, and calls Close or Cancel. index and term name the expected log entry. meta is
// as for Seal. Receive returns ErrTooLarge if meta is too long.
func (m *Images) Receive(index, term uint64, meta []byte) (*Incoming, error) {
	if err := checkSizes(nil, meta); err != nil {
		return nil, err
	}
	temp, err := m.makeTemp(imageID(index, term))
	if err == nil {
		err = m.dir.make(m.files(temp).path)
	}
	if err != nil {
		return nil, m.must(err)
	}
	in := &Incoming{images: m, temp: temp, to: m.files(temp)}
	in.made = imageMeta{index: index, term: term, meta: meta}
	in.expect(streamHead, in.streamHead)
	return in, nil
}

// Incoming is an image being received. It becomes an image when Close returns without an error. It has a buffer of
// copyBytes. Only one goroutine may use it.
type Incoming struct {
	images *Images
	temp   string
	to     directory
	made   imageMeta

	buf    []byte       // the received part of the awaited bytes
	need   int          // number of awaited bytes; 0: the stream is complete
	then   func() error // called when buf has all awaited bytes
	files  uint32       // files still to be received
	open   vfs.File     // the file being written
	left   int64        // bytes of its content still to be received
	sum    hash.Hash32  // the checksum of its head and content
	copied []byte       // copyBytes long, allocated for the first content
	err    error        // the first error; it is permanent
	ended  bool
}

// expect awaits n bytes, then calls then with these bytes in buf.
func (in *Incoming) expect(n int, then func() error) {
	in.buf, in.need, in.then = in.buf[:0], n, then
}

// Write consumes the next piece of the stream. It returns ErrStream for an invalid stream, and ErrClosed after Close or
// Cancel. After an error the caller may only call Close or Cancel.
func (in *Incoming) Write(p []byte) (int, error) {
	if in.ended {
		return 0, ErrClosed
	}
	size := len(p)
	for len(p) > 0 && in.err == nil {
		n := 0
		if in.left > 0 {
			n, in.err = in.content(p)
		} else {
			n, in.err = in.part(p)
		}
		p = p[n:]
	}
	return size - len(p), in.err
}

// content writes into the open file through a copy, because a vfs.File may change its argument and an io.Writer must
// not.
func (in *Incoming) content(p []byte) (int, error) {
	if in.copied == nil {
		in.copied = make([]byte, copyBytes)
	}
	n := copy(in.copied, p[:min(int64(len(p)), in.left)])
	_, _ = in.sum.Write(p[:n])
	in.left -= int64(n)
	_, err := in.open.Write(in.copied[:n])
	return n, in.images.must(err)
}

// part collects the awaited bytes.
func (in *Incoming) part(p []byte) (int, error) {
	if in.need == 0 {
		return 0, fmt.Errorf("%w: data follows its end", ErrStream)
	}
	n := min(in.need-len(in.buf), len(p))
	in.buf = append(in.buf, p[:n]...)
	if len(in.buf) < in.need {
		return n, nil
	}
	return n, in.then()
}

func (in *Incoming) streamHead() error {
	version, files, ok := parseStreamHead(in.buf)
	if !ok {
		return fmt.Errorf("%w: it does not begin with the header of an image", ErrStream)
	}
	if version < 1 || version > streamVersion {
		return fmt.Errorf("%w: it has format %d, this weir knows 1 to %d: run the same version on every node",
			ErrStream, version, streamVersion)
	}
	if files == 0 || files > maxImageFiles {
		return fmt.Errorf("%w: it announces %d files", ErrStream, files)
	}
	in.files = files
	in.expect(1, in.nameLen)
	return nil
}

func (in *Incoming) nameLen() error {
	n := int(in.buf[0])
	if n == 0 || n > maxImageName {
		return fmt.Errorf("%w: a name of %d bytes", ErrStream, n)
	}
	in.need, in.then = 1+n+8, in.fileHead // the length stays in buf
	return nil
}

func (in *Incoming) fileHead() (err error) {
	f, ok := parseFileHead(in.buf)
	if !ok || in.made.has(f.name) {
		return fmt.Errorf("%w: no image has a file %.80q of %d bytes there", ErrStream, f.name, f.size)
	}
	in.sum = crc32.New(castagnoli)
	_, _ = in.sum.Write(in.buf)
	in.open, err = in.to.fs.Create(in.to.file(f.name), vfs.WriteCategoryUnspecified)
	if err != nil {
		in.open = nil
		return in.images.must(err)
	}
	in.made.files = append(in.made.files, f)
	in.left = f.size
	in.expect(4, in.fileSum)
	return nil
}

func (in *Incoming) fileSum() error {
	f := &in.made.files[len(in.made.files)-1]
	if f.sum = in.sum.Sum32(); f.sum != binary.LittleEndian.Uint32(in.buf) {
		return fmt.Errorf("%w: the checksum of %s is wrong", ErrStream, f.name)
	}
	if err := in.closeFile(true); err != nil {
		return in.images.must(err)
	}
	in.expect(1, in.nameLen)
	if in.files--; in.files == 0 {
		in.need = 0
	}
	return nil
}

func (in *Incoming) closeFile(sync bool) (err error) {
	if in.open == nil {
		return nil
	}
	if sync {
		err = in.open.Sync()
	}
	err = errors.Join(err, in.open.Close())
	in.open = nil
	return err
}

// Close turns a complete and intact stream into an image, which List then returns. Close returns ErrStream for an
// invalid stream, and ErrDamaged if the image belongs to another log entry than Receive was told. After such an error
// the images are unchanged. As Seal does, Close removes old images, but never the received one.
func (in *Incoming) Close() (ImageInfo, error) {
	if in.ended {
		return ImageInfo{}, ErrClosed
	}
	err := in.err
	if err == nil && in.need > 0 {
		err = fmt.Errorf("%w: it ends early", ErrStream)
	}
	if err == nil {
		err = in.verify()
	}
	if err != nil {
		return ImageInfo{}, errors.Join(refusal(err), in.Cancel())
	}
	in.ended = true
	if err := in.to.sync(); err != nil {
		return ImageInfo{}, in.images.must(err)
	}
	info, err := in.images.publish(in.temp, in.made)
	return info, in.images.must(err)
}

// verify opens the files with Pebble and checks the image record.
func (in *Incoming) verify() error {
	o := in.images.workOptions(new(atomic.Bool))
	o.ReadOnly = true
	db, err := openPebble(in.to.path, o)
	if err != nil {
		return err
	}
	_, record, err := openJournal(db, imageRecord, in.images.renewal)
	if err == nil {
		_, err = decodeImageRecord(record, in.made.index, in.made.term)
	}
	err = errors.Join(err, db.Close())
	return errors.Join(err, in.dropLock())
}

// dropLock removes Pebble's lock file.
func (in *Incoming) dropLock() error { return in.to.fs.Remove(in.to.file("LOCK")) }

// Cancel discards the image. After Close it does nothing.
func (in *Incoming) Cancel() error {
	if in.ended {
		return nil
	}
	in.ended = true
	err := in.closeFile(false)
	return in.images.must(errors.Join(err, in.to.fs.RemoveAll(in.images.image(in.temp).path)))
}
