package bench

import (
	"context"
	"errors"
	"strings"
	"time"
)

// maxAttempts bounds how often one cell is measured: an election is rare, and a
// cluster that has one in each of three attempts has no figure to give.
const maxAttempts = 3

// undisturbed measures a cell, and again when the cluster elected a leader
// meanwhile. Each such time is noted in the row: it is part of the result.
func (r *Runner) undisturbed(ctx context.Context, c *cell, requests int, lasting time.Duration, row *Row) (sample Sample, err error) {
	for range maxAttempts {
		sample, err = c.measure(ctx, r.Generator, requests, lasting)
		if err == nil || ctx.Err() != nil || !disturbs(err) {
			return sample, err
		}
		row.Disturbed = append(row.Disturbed, err.Error())
	}
	return sample, err
}

// disturbs reports whether an error is what an election looks like from outside:
// another leader, or one of the outcomes by which clients are told to try again.
func disturbs(err error) bool {
	if errors.Is(err, ErrMoved) {
		return true
	}
	text := err.Error()
	for _, outcome := range []string{"TRYAGAIN", "UNKNOWN", "CLUSTERDOWN"} {
		if strings.Contains(text, outcome) {
			return true
		}
	}
	return false
}
