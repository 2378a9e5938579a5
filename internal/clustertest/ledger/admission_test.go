package ledger

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const rho = 0.001

// granted returns a grant with its call and return in milliseconds.
func granted(callMs, returnMs, units int64) Grant {
	return Grant{CallNs: callMs * 1e6, ReturnNs: returnMs * 1e6, Units: units}
}

func TestOverAdmittedBucket(t *testing.T) {
	for name, c := range map[string]struct {
		ops []Grant
		bad bool
	}{
		"nothing":                      {},
		"the burst at once":            {ops: []Grant{granted(0, 1, 5), granted(0, 2, 5)}},
		"one more than the burst":      {ops: []Grant{granted(0, 1, 5), granted(0, 2, 6)}, bad: true},
		"burst and refill":             {ops: []Grant{granted(0, 1, 10), granted(99, 1002, 10)}},
		"refill sooner than it can be": {ops: []Grant{granted(0, 1, 10), granted(99, 900, 10)}, bad: true},
		"late in the run": {ops: []Grant{granted(50000, 50001, 10), granted(60000, 60001, 10), granted(60100, 60101, 3)},
			bad: true},
		"overlapping, none inside another's interval": {ops: []Grant{granted(0, 1000, 10), granted(1, 2001, 10)}},
		"a second burst long after":                   {ops: []Grant{granted(0, 1, 10), granted(5000, 5001, 10)}},
		"a second burst after a failover":             {ops: []Grant{granted(0, 1, 10), granted(200, 201, 10)}, bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.bad, OverAdmittedBucket(10, 10, rho, c.ops) != nil)
		})
	}
}

// TestOverAdmittedBucketAgainstAllIntervals checks that the tree finds the same violations as a check of every
// interval.
func TestOverAdmittedBucketAgainstAllIntervals(t *testing.T) {
	const burst, perSecond = 8, 20.0
	found := 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var ops []Grant
		for range rng.IntN(12) {
			call := rng.Int64N(600)
			ops = append(ops, granted(call, call+1+rng.Int64N(80), 1+rng.Int64N(3)))
		}
		naive := false
		for _, first := range ops {
			for _, last := range ops {
				var units int64
				for _, op := range ops {
					if op.CallNs >= first.CallNs && op.ReturnNs <= last.ReturnNs {
						units += op.Units
					}
				}
				length := float64(last.ReturnNs-first.CallNs) / 1e9
				naive = naive || units > 0 && float64(units) > burst+perSecond*length*(1+rho)+roundingUnits
			}
		}
		require.Equal(t, naive, OverAdmittedBucket(burst, perSecond, rho, ops) != nil, "seed %d: %v", seed, ops)
		if naive {
			found++
		}
	}
	require.Greater(t, found, 100, "some histories must break the limit")
	require.Less(t, found, 1900, "some histories must keep the limit")
}

func TestOverAdmittedWindow(t *testing.T) {
	for name, c := range map[string]struct {
		ops []Grant
		bad bool
	}{
		"nothing":                     {},
		"the maximum at once":         {ops: []Grant{granted(0, 1, 10)}},
		"one more":                    {ops: []Grant{granted(0, 1, 10), granted(500, 501, 1)}, bad: true},
		"again in the next window":    {ops: []Grant{granted(0, 1, 10), granted(1005, 1006, 10)}},
		"again at its seam":           {ops: []Grant{granted(0, 1, 10), granted(997, 998, 10)}, bad: true},
		"one so long that it may fit": {ops: []Grant{granted(0, 1, 10), granted(500, 1002, 10)}},
		"hidden at the seam of two windows": {
			ops: []Grant{granted(0, 1, 10), granted(0, 1100, 10), granted(1101, 1102, 10)}, bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.bad, OverAdmittedWindow(10, time.Second, rho, c.ops) != nil)
		})
	}
}
