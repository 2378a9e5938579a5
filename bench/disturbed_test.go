package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// failingLoad fails its first runs.
type failingLoad struct {
	fakeLoad
	failures []error
}

func (f *failingLoad) Run(ctx context.Context, job Job) (Outcome, error) {
	if len(f.failures) > 0 {
		err := f.failures[0]
		f.failures = f.failures[1:]
		return Outcome{}, err
	}
	return f.fakeLoad.Run(ctx, job)
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
			_, _, targets, load := fakePair(t)
			runner := Runner{Load: &failingLoad{*load, c.failures}}
			var row Row
			sample, err := runner.undisturbed(context.Background(), targets[0], fakeScenario, 100, &row)
			require.ErrorIs(t, err, c.want)
			require.Len(t, row.Disturbed, c.noted)
			if c.want == nil {
				require.EqualValues(t, 4000, sample.PerSecond)
			}
		})
	}
}

// restless is a server whose leader changes while it is measured.
type restless struct {
	Server
	addrs []string // from one question to the next
}

func (r *restless) Addr(context.Context) (string, error) {
	addr := r.addrs[0]
	r.addrs = append(r.addrs[1:], addr)
	return addr, nil
}

func TestAnotherLeaderIsMeasuredAgain(t *testing.T) {
	fast, slow, targets, load := fakePair(t)
	fake := targets[0]
	fake.Server = &restless{fast, []string{fast.addr, slow.addr, slow.addr, slow.addr}}
	var row Row
	sample, err := (&Runner{Load: load, CellTime: time.Second}).undisturbed(context.Background(), fake, fakeScenario, 100, &row)
	require.NoError(t, err)
	require.EqualValues(t, 1000, sample.PerSecond, "the second attempt")
	require.Equal(t, []string{ErrMoved.Error()}, row.Disturbed)
}
