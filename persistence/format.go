package persistence

import "github.com/cockroachdb/pebble/v2/vfs"

// FormatOf returns the data format of the data directory of a server that runs alone, or 0 for an empty or absent
// directory. It does not lock or change the directory, so another process may be using it. It returns those errors of
// OpenStore that do not need the contents of state/.
func FormatOf(path string) (int, error) {
	d := directory{fs: vfs.Default, path: path}
	if fresh, err := d.inspect(); fresh || err != nil {
		return 0, err
	}
	return d.format()
}
