package bench

import (
	"context"
	"errors"
	"strings"
	"time"
)

// maxAttempts bounds how often one cell is measured. Elections are rare, and a cluster with an election in each of
// three attempts has no usable figure.
const maxAttempts = 3

// undisturbed measures a cell, and again if the cluster elected a leader meanwhile. It records each repetition in the
// row, because it is part of the result.
func (r *Runner) undisturbed(ctx context.Context, c *cell, requests int, lasting time.Duration,
	row *Row) (sample Sample, err error) {
	for range maxAttempts {
		sample, err = c.measure(ctx, r.Generator, requests, lasting)
		if err == nil || ctx.Err() != nil || !disturbs(err) {
			return sample, err
		}
		row.Disturbed = append(row.Disturbed, err.Error())
	}
	return sample, err
}

// disturbs reports whether an error is a symptom of an election: another leader, or an outcome that tells clients to
// retry.
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
