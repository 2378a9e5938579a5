package sim

import "github.com/weir-project/weir/internal/clustertest/ledger"

// drift is how much faster than true time a node's clock may run.
const drift = maxDriftPPM / 1e6

// grantsOf returns what acknowledged operations took.
func grantsOf(records []record) (grants []ledger.Grant) {
	for _, r := range records {
		if units := r.taken(); units > 0 {
			grants = append(grants, ledger.Grant{CallNs: int64(r.called), ReturnNs: int64(r.back), Units: units})
		}
	}
	return grants
}
