package filewatch

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// PollEvery is the interval between two calls of Poll. A change is reported after two intervals at most, within
	// a second. An interval is longer than the granularity of file times, so no write escapes a comparison of them.
	PollEvery = 500 * time.Millisecond
	// maxFiles bounds the files, because each poll asks the system about each file.
	maxFiles = 1000
)

// File is a file that was read.
type File struct {
	Path string
	Data []byte
}

// Equal reports whether two readings have the same files with the same content.
func Equal(a, b []File) bool {
	return slices.EqualFunc(a, b, func(x, y File) bool { return x.Path == y.Path && bytes.Equal(x.Data, y.Data) })
}

// Watcher reads some paths. Only one goroutine at a time may use it.
type Watcher struct {
	paths []string
	most  int64
	open  func(path string) (io.ReadCloser, error) // os.Open, except in tests

	seen    []found           // the files before the last reading
	last    [sha256.Size]byte // digest of the last reading
	told    [sha256.Size]byte // digest of the reading that the caller has
	pending bool              // the next Poll must read, although seen does not change
}

// found is what the system says about a file.
type found struct {
	path string
	info fs.FileInfo
}

// New returns a watcher of files and directories. It refuses files of more than most bytes together.
func New(most int64, paths ...string) *Watcher {
	return &Watcher{paths: paths, most: most, open: func(path string) (io.ReadCloser, error) { return os.Open(path) }}
}

// Read returns the files in the order of paths, and for a directory those whose names end in .yaml or .yml and do not
// begin with a dot, in the order of names. A directory without such a file is an error.
func (w *Watcher) Read() ([]File, error) {
	all, err := w.find()
	files, err := w.read(all, err)
	w.seen, w.last, w.pending = all, digest(files, err), true
	w.told = w.last
	return files, err
}

// Poll reports whether the content differs from the content that Read or Poll returned last. If so, it returns the
// files, or the error of reading them. Poll reports a content once, when two readings in a row have found it, because a
// reading may meet files that are being written. With a path that is neither a file nor a directory, such as a pipe,
// the content does not change.
func (w *Watcher) Poll() (files []File, changed bool, err error) {
	all, err := w.find()
	moved := !slices.EqualFunc(all, w.seen, same)
	if !moved && !w.pending || slices.ContainsFunc(all, isStream) {
		return nil, false, nil
	}
	files, err = w.read(all, err)
	sum := digest(files, err)
	again := sum == w.last
	w.seen, w.last = all, sum
	w.pending = moved || !again || err != nil // the cause of an error may end without a trace in seen
	if sum == w.told || !again {
		return nil, false, nil
	}
	w.told = sum
	return files, true, err
}

// find lists the files, or returns why it cannot. It follows links.
func (w *Watcher) find() (all []found, err error) {
	for _, path := range w.paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			all = append(all, found{path, info})
			continue
		}
		in, err := filesOf(path)
		if err != nil {
			return nil, err
		}
		all = append(all, in...)
	}
	if len(all) > maxFiles {
		return nil, fmt.Errorf("%s: more than %d files", strings.Join(w.paths, ", "), maxFiles)
	}
	return all, nil
}

// filesOf lists the YAML files of a directory.
func filesOf(dir string) (all []found, err error) {
	entries, err := os.ReadDir(dir) // in the order of names
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if strings.HasPrefix(e.Name(), ".") || ext != ".yaml" && ext != ".yml" {
			continue
		}
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a regular file", path)
		}
		all = append(all, found{path, info})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: the directory has no file whose name ends in .yaml or .yml", dir)
	}
	return all, nil
}

// isStream reports whether a path can be read only once.
func isStream(f found) bool { return !f.info.Mode().IsRegular() }

// same reports whether two answers of the system are about one file with one content.
func same(a, b found) bool {
	return a.path == b.path && os.SameFile(a.info, b.info) && a.info.Size() == b.info.Size() &&
		a.info.ModTime().Equal(b.info.ModTime()) && a.info.Mode() == b.info.Mode()
}

// read reads the files that were found. It returns no file after an error.
func (w *Watcher) read(all []found, err error) ([]File, error) {
	if err != nil {
		return nil, err
	}
	var files []File
	rest := w.most
	for _, one := range all {
		data, err := w.readFile(one.path, rest)
		if err != nil {
			return nil, err
		}
		if rest -= int64(len(data)); rest < 0 {
			return nil, fmt.Errorf("%s: longer than %d bytes", strings.Join(w.paths, ", "), w.most)
		}
		files = append(files, File{one.path, data})
	}
	return files, nil
}

// readFile reads at most most+1 bytes of a file.
func (w *Watcher) readFile(path string, most int64) ([]byte, error) {
	f, err := w.open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}

// digest identifies the result of a reading.
func digest(files []File, err error) [sha256.Size]byte {
	h := sha256.New()
	if err != nil {
		fmt.Fprint(h, err)
	}
	for _, f := range files {
		fmt.Fprintf(h, "%d %d %s", len(f.Path), len(f.Data), f.Path)
		h.Write(f.Data)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
