package listener

import (
	"errors"
	"fmt"
)

// ErrFewFiles reports that the limit on file descriptors leaves none for clients.
var ErrFewFiles = errors.New("too few file descriptors: raise the limit (ulimit -n)")

// MaxClients returns how many clients a process can serve. files is its limit on file descriptors, and besides is how
// many of them have other uses.
func MaxClients(files, besides uint64) (int, error) {
	if files <= besides {
		return 0, fmt.Errorf("%w; the limit is %d, and these ports alone need %d",
			ErrFewFiles, files, besides)
	}
	return int(min(files-besides, 1<<30)), nil
}
