package persistence

import "github.com/cockroachdb/pebble/v2/vfs"

// FormatOf returns the format of a node's data directory, or 0 for an empty one. It does not open the directory, which
// another process may be using. It returns the errors of a start that are detectable without opening.
func FormatOf(path string) (int, error) {
	d := directory{fs: vfs.Default, path: path}
	if fresh, err := d.inspect(); fresh || err != nil {
		return 0, err
	}
	return d.format()
}
