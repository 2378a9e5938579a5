package timezone

import (
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
)

// maxZones bounds the cached time zones. The IANA database has about 600 names. Further zones are loaded at every use.
const maxZones = 1024

// maxZoneBytes exceeds every IANA name.
const maxZoneBytes = 64

// Calendars computes the ends of calendar windows in a time zone: days, weeks that begin on Monday, months and years.
type Calendars struct {
	utc   *zone
	mu    sync.RWMutex
	zones map[string]*zone
}

// zone caches the last window of each mode. A window is immutable, because operations point to it.
type zone struct {
	location *time.Location
	windows  [engine.Year + 1]atomic.Pointer[calendarWindow]
}

type calendarWindow struct {
	StartNs int64
	Ends    engine.Calendar
}

func NewCalendars() *Calendars {
	return &Calendars{utc: &zone{location: time.UTC}, zones: make(map[string]*zone)}
}

// At returns the end of the window of mode that contains the wall time of the stamp, and the end of the next window. A
// nil zoneName means UTC. The result is shared and must not be changed.
func (c *Calendars) At(now engine.Stamp, mode engine.WindowMode, zoneName []byte) (*engine.Calendar, error) {
	z := c.utc
	if zoneName != nil {
		var err error
		if z, err = c.zone(zoneName); err != nil {
			return nil, err
		}
	}
	wallNs := now.NowNs + now.WallOffsetNs
	w := z.windows[mode].Load()
	if w == nil || wallNs < w.StartNs || wallNs >= w.Ends.EndNs {
		w = WindowAt(wallNs, mode, z.location)
		w.Ends.Zone = z.location.String()
		z.windows[mode].Store(w)
	}
	return &w.Ends, nil
}

func (c *Calendars) zone(name []byte) (*zone, error) {
	c.mu.RLock()
	z := c.zones[string(name)]
	c.mu.RUnlock()
	if z != nil {
		return z, nil
	}
	location, err := loadZone(name)
	if err != nil {
		return nil, err
	}
	z = &zone{location: location}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.zones) < maxZones {
		c.zones[string(name)] = z
	}
	return z, nil
}

// loadZone loads a time zone. It rejects "Local" and the empty name, which Go maps to the zone of the machine and to
// UTC. It also rejects alternative spellings of a zone's path, which would fill the cache, and unknown names.
func loadZone(name []byte) (*time.Location, error) {
	bad := limits.Bad("TZ", "must be an IANA time zone like UTC or Europe/Berlin", name)
	if len(name) == 0 || len(name) > maxZoneBytes || string(name) == "Local" ||
		path.Clean(string(name)) != string(name) {
		return nil, bad
	}
	location, err := lookUp(string(name))
	if err != nil {
		return nil, bad
	}
	return location, nil
}

// WindowAt computes the window from calendar dates and not from a number of hours, because a day has 23 or 25 hours
// when clocks change.
func WindowAt(wallNs int64, mode engine.WindowMode, location *time.Location) *calendarWindow {
	t := time.Unix(0, wallNs).In(location)
	year, month, day := t.Date()
	var years, months, days int
	switch mode {
	case engine.Day:
		days = 1
	case engine.Week:
		day -= (int(t.Weekday()) + 6) % 7 // back to Monday
		days = 7
	case engine.Month:
		day, months = 1, 1
	case engine.Year:
		month, day, years = time.January, 1, 1
	}
	begin := func(i int) int64 {
		return startOfDay(year+i*years, month+time.Month(i*months), day+i*days, location)
	}
	w := &calendarWindow{StartNs: begin(0)}
	i := 1
	for ; w.Ends.EndNs <= wallNs; i++ { // repeats if a zone skipped a day
		w.Ends.EndNs = begin(i)
	}
	for ; w.Ends.NextEndNs <= w.Ends.EndNs; i++ {
		w.Ends.NextEndNs = begin(i)
	}
	return w
}

// startOfDay returns the first instant of a date. If clocks change at midnight, 0:00 may not exist, and the day begins
// with the change. If 0:00 exists twice, the day begins with the first. time.Date does not define which instant it
// returns.
func startOfDay(year int, month time.Month, day int, location *time.Location) int64 {
	t := time.Date(year, month, day, 0, 0, 0, 0, location)
	if noon := time.Date(year, month, day, 12, 0, 0, 0, location); t.Day() != noon.Day() {
		_, t = t.ZoneBounds()
		return t.UnixNano()
	}
	if change, _ := t.ZoneBounds(); !change.IsZero() {
		_, after := t.Zone()
		_, before := change.Add(-1).Zone()
		first := t.Add(time.Duration(after-before) * time.Second)
		if first.Before(change) && before > after {
			t = first
		}
	}
	return t.UnixNano()
}
