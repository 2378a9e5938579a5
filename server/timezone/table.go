package timezone

import (
	"sort"
	"sync"
	"time"

	"github.com/weir-project/weir/engine"
)

// Tables caches the time zones that policies of this process have named. The host's
// database is searched once for each.
var Tables zoneCache

// zoneCache remembers the table of up to maxZones time zones, by name. A table does not
// change and is shared by all policies that name the zone.
type zoneCache struct {
	mu     sync.Mutex
	tables map[string]*engine.Zone
}

// Get returns the table of a time zone, or an error that names what is accepted.
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

// zoneFrom and zoneUntil are the years whose changes of the clock a policy knows;
// before and behind them the nearest offset holds.
const zoneFrom, zoneUntil = 2020, 2100

// zoneTable returns a time zone's table, from this machine's database.
func zoneTable(name string, location *time.Location) *engine.Zone {
	z := &engine.Zone{Name: name}
	offsetAt := func(sec int64) int64 {
		_, offset := time.Unix(sec, 0).In(location).Zone()
		return int64(offset)
	}
	first, last := time.Date(zoneFrom, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(zoneUntil, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	z.Changes = append(z.Changes, engine.ZoneChange{AtSec: first, OffsetSec: offsetAt(first)})
	// Location.ZoneBounds would say it at once, but at some turns of the year it answers
	// a zone without length (go1.26).
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
