package persistence

import "github.com/cockroachdb/pebble/v2/vfs"

// FormatOf says in which format a node's data directory is, 0 when it holds nothing yet,
// without opening it: another process may be using it. Its errors are those of a start
// with the directory, as far as they can be seen from outside.
func FormatOf(path string) (int, error) {
	d := directory{fs: vfs.Default, path: path}
	if fresh, err := d.inspect(); fresh || err != nil {
		return 0, err
	}
	return d.format()
}
