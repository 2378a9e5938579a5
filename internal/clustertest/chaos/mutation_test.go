package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// mutationTime is how long clients work on a server with a known mistake.
const mutationTime = 14 * time.Second

// TestMutations checks the harness itself: it must find each known mistake of a real cluster.
// Four mistakes are left to other tests, because clients rarely or never see them:
// - a log without fsync, because kill -9 keeps the kernel's buffers;
// - a snapshot without its stamp, because later entries bring the time back;
// - no clamp, because the stamps of one leader never go back;
// - the heartbeat fast path, which takes some hundred pauses: -chaos.pauses with -chaos.args.
func TestMutations(t *testing.T) {
	skipShort(t)
	if !*mutations {
		t.Skip("takes minutes: with -chaos.mutations")
	}
	for fault, c := range map[string]struct {
		kind  Kind    // of all faults of the run
		found []error // the run must find at least one of them
	}{
		"early-reply":      {TransferLead, []error{ErrExited, ledger.ErrDiverged, ledger.ErrNotLinearizable}},
		"read-locally":     {Partition, []error{ledger.ErrNotLinearizable}},
		"fresh-by-contact": {KillOne, []error{ledger.ErrUnderstated}},
		"wall-clock":       {StepWall, []error{ledger.ErrOverAdmitted}},
		"collect-early":    {TransferLead, []error{ledger.ErrOverAdmitted, ErrExited, ledger.ErrDiverged}},
		"stale-index":      {KillAll, []error{ErrExited, ledger.ErrDiverged, ledger.ErrNotLinearizable}},
	} {
		t.Run(fault, func(t *testing.T) {
			cfg := config(t, 3, *heartbeat)
			cfg.Args = append(cfg.Args, "--test-fault", fault)
			rep, err := Run(t.Context(), RunConfig{
				Cluster: cfg, Duration: mutationTime, Seed: theSeed(), Restless: true, Logf: t.Logf,
				Plans: [][]Step{again(c.kind, mutationTime)},
			})
			require.NoError(t, err)
			var errs []error
			for _, v := range rep.Violations {
				errs = append(errs, v.Err)
			}
			found := false
			for _, want := range c.found {
				found = found || anyIs(errs, want)
			}
			require.True(t, found, "%v", rep)
			t.Logf("%d violations, the first: %.300s", rep.Broken, rep.Violations[0])
		})
	}
}

// again returns steps that repeat one fault, each with another seed.
func again(kind Kind, run time.Duration) []Step {
	var plan []Step
	for at := 3 * time.Second; at < run-2*time.Second; at += 2500 * time.Millisecond {
		plan = append(plan, Step{At: at, For: time.Second, Kind: kind, Seed: uint64(len(plan))})
	}
	return plan
}
