package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-project/weir/bench/servers"
)

const (
	// A calibration lasts one part in calibrationParts of a cell. That is long enough to determine the requests of a
	// cell, and to warm the server up.
	calibrationParts = 4
	// calibrationPipelines is how many pipelines each connection sends in a first calibration. They take some
	// milliseconds.
	calibrationPipelines = 4
	// overheadPercent is the time of a cell in addition to its load: connecting and settling.
	overheadPercent = 20
	// leastCell is the minimum length: below it the system's CPU accounting of 10 ms matters more than a few percent.
	// mostCell contains one or two saves.
	leastCell, mostCell = 300 * time.Millisecond, 2 * time.Second
	// cellStep rounds the length of cells, so that runs of one suite have equal cells.
	cellStep = 100 * time.Millisecond
	// startTime is the approximate time of starting and stopping a server. A cluster also waits for an election.
	startTime, electionTime = 500 * time.Millisecond, 4 * time.Second
	// slowFill is the keys per second that the slowest script creates.
	slowFill = 100_000
)

// plan returns the length of each cell so that all cells fit the deadline: CellTime, or the remaining time for it. It
// returns ErrTooLong if no useful length fits.
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
		return 0, fmt.Errorf(
			"%w: it would take about %v; ask for fewer scenarios or repetitions, shorter cells or more time",
			ErrTooLong, (besides + max(takes, leastCell*time.Duration(loads))).Round(time.Second))
	}
	return cell, nil
}

// loads returns how many cells' worth of loads a run makes, rounded up, and the additional time it takes.
func (r *Runner) loads(all []contest) (loads int, besides time.Duration) {
	parts, started := 0, make(map[servers.Server]bool)
	for _, c := range all {
		for _, one := range c.cells {
			parts += r.Repetitions*calibrationParts + 2 // calibrations, the first of them short
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
