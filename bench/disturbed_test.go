package bench

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/bench/servers"
)

// failingGenerator fails its first runs.
type failingGenerator struct {
	fakeGenerator
	failures []error
}

func (f *failingGenerator) Run(ctx context.Context, job Job) (Outcome, error) {
	if len(f.failures) > 0 {
		err := f.failures[0]
		f.failures = f.failures[1:]
		return Outcome{}, err
	}
	return f.fakeGenerator.Run(ctx, job)
}

func TestAnElectionIsMeasuredAgainAndSaid(t *testing.T) {
	election, other := errors.New("Error from server: UNKNOWN it may have been counted"), errors.New("NOSCRIPT")
	for name, c := range map[string]struct {
		failures []error
		want     error
		noted    int
	}{
		"none":          {},
		"one":           {[]error{election}, nil, 1},
		"two":           {[]error{election, ErrMoved}, nil, 2},
		"no end of it":  {[]error{election, election, election}, election, 3},
		"another error": {[]error{other}, other, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakes(t)
			runner := Runner{Generator: &failingGenerator{*f.generator, c.failures}}
			var row Row
			sample, err := runner.undisturbed(context.Background(), f.cell("fast"), 100, 0, &row)
			require.ErrorIs(t, err, c.want)
			require.Len(t, row.Disturbed, c.noted)
			if c.want == nil {
				require.EqualValues(t, 4000, sample.PerSecond)
			}
		})
	}
}

// restless is a server whose leader changes during a measurement.
type restless struct {
	servers.Server
	addrs []string // the leader's address, from one request to the next
}

func (r *restless) Addr(context.Context) (string, error) {
	addr := r.addrs[0]
	r.addrs = append(r.addrs[1:], addr)
	return addr, nil
}

func TestAnotherLeaderIsMeasuredAgain(t *testing.T) {
	f := newFakes(t)
	moving := f.cell("fast")
	moving.target.Server = &restless{f.fast, []string{f.fast.addr, f.slow.addr, f.slow.addr, f.slow.addr}}
	var row Row
	sample, err := f.runner(1).undisturbed(context.Background(), moving, 100, 0, &row)
	require.NoError(t, err)
	require.EqualValues(t, 1000, sample.PerSecond, "the second attempt")
	require.Equal(t, []string{ErrMoved.Error()}, row.Disturbed)
}
