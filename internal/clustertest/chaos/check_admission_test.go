package chaos

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOverAdmittedBucket(t *testing.T) {
	for name, c := range map[string]struct {
		ops []Op
		bad bool
	}{
		"nothing":                       {},
		"the burst at once":             {ops: []Op{grant(0, 1, 5), grant(0, 2, 5)}},
		"one more than the burst":       {ops: []Op{grant(0, 1, 5), grant(0, 2, 6)}, bad: true},
		"burst and refill":              {ops: []Op{grant(0, 1, 10), grant(99, 1002, 10)}},
		"refill sooner than it can be":  {ops: []Op{grant(0, 1, 10), grant(99, 900, 10)}, bad: true},
		"unknown counts as not granted": {ops: []Op{grant(0, 1, 10), unknown(grant(0, 2, 10))}},
		"a denial": {ops: []Op{grant(0, 1, 10),
			{Verb: Take, Units: 5, CallNs: 1, ReturnNs: 2 * ms}}},
		"late in the run": {ops: []Op{grant(50000, 50001, 10), grant(60000, 60001, 10), grant(60100, 60101, 3)},
			bad: true},
		"overlapping, none inside another's interval": {ops: []Op{grant(0, 1000, 10), grant(1, 2001, 10)}},
		"a second burst long after":                   {ops: []Op{grant(0, 1, 10), grant(5000, 5001, 10)}},
		"a second burst after a failover":             {ops: []Op{grant(0, 1, 10), grant(200, 201, 10)}, bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			requireErr(t, c.bad, ErrOverAdmitted, OverAdmittedBucket(10, 10, c.ops))
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
		var ops []Op
		for range rng.IntN(12) {
			call := rng.Int64N(600)
			ops = append(ops, grant(call, call+1+rng.Int64N(80), 1+rng.Int64N(3)))
		}
		naive := false
		for _, first := range ops {
			for _, last := range ops {
				var units int64
				for _, op := range ops {
					if op.CallNs >= first.CallNs && op.ReturnNs <= last.ReturnNs {
						units += op.Granted
					}
				}
				length := float64(last.ReturnNs-first.CallNs) / 1e9
				naive = naive || units > 0 && float64(units) > burst+perSecond*length*(1+Rho)+roundingUnits
			}
		}
		require.Equal(t, naive, OverAdmittedBucket(burst, perSecond, ops) != nil, "seed %d:\n%s", seed, show(ops))
		if naive {
			found++
		}
	}
	require.Greater(t, found, 100, "some histories must break the limit")
	require.Less(t, found, 1900, "some histories must keep the limit")
}

func TestOverAdmittedSliding(t *testing.T) {
	for name, c := range map[string]struct {
		ops []Op
		bad bool
	}{
		"nothing":                     {},
		"the maximum at once":         {ops: []Op{grant(0, 1, 10)}},
		"one more":                    {ops: []Op{grant(0, 1, 10), grant(500, 501, 1)}, bad: true},
		"again in the next window":    {ops: []Op{grant(0, 1, 10), grant(1005, 1006, 10)}},
		"again at its seam":           {ops: []Op{grant(0, 1, 10), grant(997, 998, 10)}, bad: true},
		"one so long that it may fit": {ops: []Op{grant(0, 1, 10), grant(500, 1002, 10)}},
		"unknown":                     {ops: []Op{grant(0, 1, 10), unknown(grant(500, 501, 5))}},
		"hidden at the seam of two windows": {
			ops: []Op{grant(0, 1, 10), grant(0, 1100, 10), grant(1101, 1102, 10)}, bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			requireErr(t, c.bad, ErrOverAdmitted, OverAdmittedSliding(10, time.Second, c.ops))
		})
	}
}
