package listener

import (
	"errors"
	"fmt"
)

// ErrFewFiles: the limit on file descriptors leaves room for no client.
var ErrFewFiles = errors.New("too few file descriptors: raise the limit (ulimit -n)")

// ClientRoom returns how many clients a number of file descriptors suffices for, of which so
// many are for others.
func ClientRoom(files, besides uint64) (int, error) {
	if files <= besides {
		return 0, fmt.Errorf("%w, there are %d and these ports need %d besides those of clients", ErrFewFiles, files, besides)
	}
	return int(min(files-besides, 1<<30)), nil
}
