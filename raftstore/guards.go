package raftstore

import "github.com/weir-project/weir/internal/guards"

// The guards of this package against races of terms, identities and foundings. Each has a
// test that fails without it; package sim reports which of them its runs exercise.
var (
	guardVoidEntry        = guards.New("entry of another term")
	guardSecondFounding   = guards.New("second founding")
	guardTimeBack         = guards.New("stamp goes back")
	guardOldNote          = guards.New("wall clocks of another term")
	guardEarlyQuestion    = guards.New("early question outlived")
	guardMixedAnswer      = guards.New("mixed answer of two leaders")
	guardLateAnswer       = guards.New("late answer")
	guardDisputedAnswer   = guards.New("answer in dispute")
	guardForeignCall      = guards.New("forwarded to a former leader")
	guardOldRound         = guards.New("quorum round of another term")
	guardDeposed          = guards.New("quorum round finds a later term")
	guardUnapplied        = guards.New("committed and not applied")
	guardElectedTwice     = guards.New("term changed while becoming leader")
	guardLateImage        = guards.New("late image")
	guardReplacedTable    = guards.New("table replaced during a snapshot")
	guardInvitedElsewhere = guards.New("invitation of a member")
	guardFoundedAround    = guards.New("founding beside a cluster")
	guardJoinForOther     = guards.New("join for another node")
	guardLostState        = guards.New("join under a member's id")
	guardSpentID          = guards.New("join under a spent id")
	guardAddressTaken     = guards.New("join at a member's address")
	guardNotTakenIn       = guards.New("election without being taken in")
)
