package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weir-project/weir/internal/cli/cmdline"
)

// These file systems lose their files: tmpfs when the machine restarts, overlay together with the container.
const (
	tmpfs   = "tmpfs"
	overlay = "overlay"
)

const (
	// diskTightParts is the bound of the alert WeirDiskFillsUp, which fires when less than one part in diskTightParts
	// is free.
	diskTightParts = 10
	// diskLeast is the free space without which weir should not start. Its log and its files need that much before
	// the first compaction.
	diskLeast = 256 << 20
	// syncSlow is the longest time that a decision of a cluster should wait for its disk. syncStuck is longer than
	// the interval between two flushes of a single node.
	syncSlow, syncStuck = 20 * time.Millisecond, time.Second
	// syncTimes is enough for a median that one outlier does not change.
	syncTimes, syncBytes = 9, 4096
)

// volume is the file system of the data directory.
type volume struct {
	kind       string // "": not known by name
	free, size uint64 // bytes
}

func (d *Subject) lookAtDisk() []Finding {
	if d.DataDir == "" {
		return []Finding{{Doubt, "disk", "no --data-dir: a restart loses all state",
			"give one, unless the state may be lost"}}
	}
	there, err := nearestDir(d.DataDir)
	if err != nil {
		return []Finding{{Wrong, "disk", oneLine(err), "choose another --data-dir"}}
	}
	var found []Finding
	if v, err := volumeOf(there); err == nil {
		found = append(found, v.judge(d.DataDir), v.judgeKind(d.DataDir))
	}
	took, err := syncTime(there)
	if err != nil {
		return append(found, Finding{Wrong, "disk", oneLine(err), "let the user that runs weir write to " + d.DataDir +
			", and run doctor as that user"})
	}
	return append(found, judgeSync(took, d.Clustered))
}

// nearestDir returns the directory, or its nearest existing parent.
func nearestDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	for err == nil {
		var at fs.FileInfo
		if at, err = os.Stat(dir); err == nil && !at.IsDir() {
			return "", fmt.Errorf("%s is not a directory", dir)
		} else if err == nil {
			return dir, nil
		}
		if above := filepath.Dir(dir); above != dir && errors.Is(err, fs.ErrNotExist) {
			dir, err = above, nil
		}
	}
	return "", err
}

func (v volume) judge(dir string) Finding {
	said := fmt.Sprintf("%s has %s free of %s", dir, cmdline.BytesText(v.free), cmdline.BytesText(v.size))
	switch {
	case v.free < diskLeast:
		return Finding{Wrong, "disk", said, "free some space: weir stops when the disk is full"}
	case v.free < v.size/diskTightParts:
		return Finding{Doubt, "disk", said, "free some space: weir stops when the disk is full"}
	}
	return Finding{Fine, "disk", said, ""}
}

func (v volume) judgeKind(dir string) Finding {
	on := dir + " is on " + cmp.Or(v.kind, "a file system unknown by name")
	switch v.kind {
	case tmpfs:
		return Finding{Doubt, "disk", on + ", which is memory",
			"choose a --data-dir on a disk: a reboot erases this one"}
	case overlay:
		return Finding{Doubt, "disk", on + ", the writable layer of a container",
			"mount a volume there: this layer is deleted with the container"}
	case "nfs", "cifs", "smb", "9p", "fuse":
		return Finding{Doubt, "disk", on + ", which may acknowledge a write before it is durable",
			"choose a --data-dir on a local disk"}
	}
	return Finding{Fine, "disk", on, ""}
}

// syncTime returns the median time of a small synchronous write in dir.
func syncTime(dir string) (median time.Duration, err error) {
	f, err := os.CreateTemp(dir, "weir-doctor-*")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil { // at once, so that no file stays after a failure
		return 0, err
	}
	took := make([]time.Duration, syncTimes)
	for i := range took {
		start := time.Now()
		_, err := f.Write(make([]byte, syncBytes))
		if err = errors.Join(err, f.Sync()); err != nil {
			return 0, err
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[syncTimes/2], nil
}

func judgeSync(took time.Duration, clustered bool) Finding {
	said := fmt.Sprintf("a write of 4 KiB with fsync takes %v", took.Round(10*time.Microsecond))
	switch {
	case took > syncStuck:
		return Finding{Wrong, "disk", said, "choose a faster disk: weir writes the state every second"}
	case clustered && took > syncSlow:
		return Finding{Doubt, "disk", said,
			"choose a faster disk, because each batch of decisions waits for it; or use --durability os"}
	}
	return Finding{Fine, "disk", said, ""}
}
