package engine

// Rules is a version of the rules by which a table decides. Replicas apply an entry of their log by the rules that
// were in force when the entry was written, so that replicas of different versions do not diverge.
type Rules uint32

// The versions. A version contains the versions before it.
const (
	// RulesOldest are the rules of the first versions.
	RulesOldest Rules = iota + 1
	// RulesWaits: a denial by a block tells a wait after which the limits behind the block admit the request, too. A
	// check of normal priority does not go into debt at the cost of the units that its policy reserves.
	RulesWaits
	// RulesDefinitions: a changed definition of a policy counts from its change on (definitions.go). A bucket keeps
	// what was used when its limit changes, and the denial of a sliding log or a penalty puts the limit in force.
	RulesDefinitions
	// RulesBlocks: a block of a key and its block everywhere stand side by side (blocks.go).
	RulesBlocks
	// RulesNetworks: a block everywhere of a network denies the decisions of every address in the network.
	RulesNetworks
	// RulesManyBlocks: the version of a block everywhere is a part of its entry and not of the order (order.go), and
	// more blocks everywhere may be in force.
	RulesManyBlocks
	// RulesManyHolds: a limiter may have MaxAllocations allocations of holds instead of MaxHolders. They outlast a
	// change of the maximum of a window.
	RulesManyHolds
	// RulesNewest are the rules of a table on which SetRules was not called.
	RulesNewest = RulesManyHolds
)

// SetRules changes the rules by which the table decides from now on.
func (t *Table) SetRules(r Rules) {
	if t.Rules() != r {
		t.rules.Store(uint32(r))
		t.eachShard(Stamp{}, func(s *shard) { s.OldRules, s.FewHolds = r < RulesDefinitions, r < RulesManyHolds })
	}
}

// Rules returns the rules by which the table decides.
func (t *Table) Rules() Rules { return Rules(t.rules.Load()) }
