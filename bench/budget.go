package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-project/weir/bench/servers"
)

const (
	// calibrationParts of a cell are enough to tell how many requests fill it, and
	// warm the server up as well.
	calibrationParts = 4
	// calibrationPipelines on each connection take some milliseconds.
	calibrationPipelines = 4
	// overheadPercent is what a cell takes beside its load: connecting, settling.
	overheadPercent = 20
	// leastCell is too short for the system's 10 ms of CPU accounting to matter less
	// than a few percent; mostCell holds a save or two.
	leastCell, mostCell = 300 * time.Millisecond, 2 * time.Second
	// cellStep lets runs of one suite have cells of one length.
	cellStep = 100 * time.Millisecond
	// startTime is about what starting and stopping a server takes; a cluster waits
	// for an election.
	startTime, electionTime = 500 * time.Millisecond, 4 * time.Second
	// slowFill is keys a second through the slowest script here.
	slowFill = 100_000
)

// plan is how long each cell of a run may take for all to fit its deadline: CellTime,
// or what is left for it. ErrTooLong when nothing sensible is.
func (r *Runner) plan(ctx context.Context, all []contest) (time.Duration, error) {
	deadline, bounded := ctx.Deadline()
	loads, besides := r.loads(all)
	cell := r.CellTime
	left := time.Until(deadline) - besides
	if cell == 0 {
		cell = mostCell
		if bounded {
			cell = min(mostCell, left*100/(100+overheadPercent)/time.Duration(max(loads, 1))).Truncate(cellStep)
		}
	}
	takes := cell * time.Duration(loads) * (100 + overheadPercent) / 100
	if bounded && takes > left || cell < leastCell && r.CellTime == 0 {
		return 0, fmt.Errorf("%w: it would take about %v; ask for fewer scenarios or repetitions, shorter cells or more time",
			ErrTooLong, (besides + max(takes, leastCell*time.Duration(loads))).Round(time.Second))
	}
	return cell, nil
}

// loads is how many cells' worth of loads a run makes, rounded up, and the time it takes
// besides.
func (r *Runner) loads(all []contest) (loads int, besides time.Duration) {
	parts, started := 0, make(map[servers.Server]bool)
	for _, c := range all {
		for _, one := range c.cells {
			parts += r.Repetitions*calibrationParts + 2 // calibrations, the first being a glance
			if server := processes(one.target.Server); !started[server] {
				started[server] = true
				besides += startTime
				if _, elects := server.(*servers.Cluster); elects {
					besides += electionTime
				}
			}
			if one.Load.Filled {
				besides += time.Duration(one.Load.Keys) * time.Second / slowFill
			}
		}
		if c.RateOf != "" {
			parts += 2
		}
	}
	return (parts + calibrationParts - 1) / calibrationParts, besides
}
