package bench

import (
	"fmt"
	"path/filepath"
	"slices"
)

// In returns the tools with those of a directory of scripts/rivals.sh in the place of others.
func (t Tools) In(dir string) Tools {
	for name, tool := range map[string]*string{
		"redis-server": &t.RedisServer, "libredis_cell.so": &t.RedisCell, "valkey-server": &t.Valkey,
		"throttlecrab-server": &t.ThrottleCrab, "throttlecrab": &t.ThrottleCrab,
	} {
		if path := firstFile(filepath.Join(dir, name)); path != "" {
			*tool = path
		}
	}
	return t
}

// rivals compares token buckets of all rivals at three depths of pipelining, under the load of each generator.
func rivals() (all []Scenario) {
	for _, depth := range rivalDepths {
		for _, by := range []GeneratorName{OurGenerator, ByRedisBenchmark, ByTwoThreads} {
			l := bucket(usualClients, depth)
			l.By = by
			all = append(all, beside(fmt.Sprintf("rivals-p%d%s", depth, by.suffix()), l, weirName, cellName,
				cellThreadsName, valkeyCellName, luaName, crabName, setName, incrName, valkeySetName))
		}
	}
	return all
}

// limitNothing are targets that show the machine's speed.
var limitNothing = []string{setName, incrName, valkeySetName}

// strongest returns the row of the limiter with the greatest rate, without weir. ok is false if weir is alone.
func (s ScenarioReport) strongest() (row Row, ok bool) {
	for _, r := range s.Rows {
		if r.Target == weirName || slices.Contains(limitNothing, r.Target) {
			continue
		}
		if !ok || r.Figures[Rate].Median > row.Figures[Rate].Median {
			row, ok = r, true
		}
	}
	return row, ok
}

// strongestGrid has a line for each scenario of rivals: weir, its strongest rival, and the machine's speed.
func (r *Report) strongestGrid() grid {
	g := grid{Head: []string{"scenario", "weir", "strongest rival", "its rate", "weir/rival",
		"weir/" + setName, "weir/" + incrName, setName, incrName}}
	known := mapOf(rivals(), func(s Scenario) string { return s.Name })
	for _, s := range r.Scenarios {
		rival, ok := s.strongest()
		if !ok || !slices.Contains(known, s.Name) || s.Rows[0].Target != weirName {
			continue
		}
		g.Rows = append(g.Rows, []entry{plain(s.Name), s.Rows[0].entry(Rate), plain(rival.Label), rival.entry(Rate),
			rival.FirstOverThis.entry(times), s.of(setName).over(), s.of(incrName).over(),
			s.of(setName).entry(Rate), s.of(incrName).entry(Rate)})
	}
	return g.withoutEmpty()
}

// of returns the row of a target, or an empty one.
func (s ScenarioReport) of(target string) (row Row) {
	if i := slices.IndexFunc(s.Rows, func(r Row) bool { return r.Target == target }); i >= 0 {
		row = s.Rows[i]
	}
	return row
}

// over is the first row's rate over this one's. It is empty for an empty row.
func (r Row) over() entry {
	if r.Label == "" {
		return entry{}
	}
	return r.FirstOverThis.entry(times)
}
