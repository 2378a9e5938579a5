package timezone

import (
	"sort"
	"sync"
	"time"

	"github.com/weir-project/weir/engine"
)

// Tables caches the time zones that policies of this process have named. It reads the host's database once for each.
var Tables zoneCache

// zoneCache caches the tables of up to maxZones time zones, by name. All policies that name a zone share its immutable
// table.
type zoneCache struct {
	mu     sync.Mutex
	tables map[string]*engine.Zone
}

// Get returns the table of a time zone, or an error that states the accepted values.
func (c *zoneCache) Get(name []byte) (*engine.Zone, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if z := c.tables[string(name)]; z != nil {
		return z, nil
	}
	location, err := loadZone(name)
	if err != nil {
		return nil, err
	}
	z := zoneTable(string(name), location)
	if c.tables == nil {
		c.tables = map[string]*engine.Zone{}
	}
	if len(c.tables) < maxZones {
		c.tables[z.Name] = z
	}
	return z, nil
}

// zoneFrom and zoneUntil bound the years whose clock changes a policy contains. Outside of them the nearest offset
// applies.
const zoneFrom, zoneUntil = 2020, 2100

// zoneTable returns a time zone's table, from this machine's database.
func zoneTable(name string, location *time.Location) *engine.Zone {
	z := &engine.Zone{Name: name}
	offsetAt := func(sec int64) int64 {
		_, offset := time.Unix(sec, 0).In(location).Zone()
		return int64(offset)
	}
	first, last := time.Date(zoneFrom, 1, 1, 0, 0, 0, 0, time.UTC).Unix(),
		time.Date(zoneUntil, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	z.Changes = append(z.Changes, engine.ZoneChange{AtSec: first, OffsetSec: offsetAt(first)})
	// Location.ZoneBounds would be simpler, but it returns an empty zone at some turns of the year (go1.26).
	for at := first; at < last && len(z.Changes) < engine.MaxZoneChanges; at += zoneStepSec {
		before := offsetAt(at)
		if offsetAt(at+zoneStepSec) == before {
			continue
		}
		into := sort.Search(zoneStepSec, func(s int) bool { return offsetAt(at+int64(s)) != before })
		z.Changes = append(z.Changes, engine.ZoneChange{AtSec: at + int64(into), OffsetSec: offsetAt(at + int64(into))})
	}
	return z
}

// zoneStepSec is less than the time between any two changes of a clock, in seconds.
const zoneStepSec = 7 * 24 * 3600
