package timezone

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"io/fs"
	"os"
	"sync"
	"time"
)

// zoneData is the IANA's database, a file for each zone. The comment of the archive is the release. scripts/zones.sh
// writes it.
//
//go:embed zoneinfo.zip
var zoneData []byte

var shipped = sync.OnceValue(func() *zip.Reader {
	r, err := zip.NewReader(bytes.NewReader(zoneData), int64(len(zoneData)))
	if err != nil {
		panic(err) // the program was built with a damaged archive
	}
	return r
})

// lookUp returns a zone of the data that weir ships. The zones of the host may be years old, and differ between the
// nodes of a cluster. If the environment variable ZONEINFO is set, the zone comes from where it points to.
func lookUp(name string) (*time.Location, error) {
	if os.Getenv("ZONEINFO") != "" {
		return time.LoadLocation(name)
	}
	data, err := fs.ReadFile(shipped(), name)
	if err != nil {
		return nil, err
	}
	return time.LoadLocationFromTZData(name, data)
}
