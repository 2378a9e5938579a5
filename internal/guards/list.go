package guards

// These guards of the packages below raftstore protect against races of terms, identities and foundings. Each has a
// test that fails without it.
var (
	VoidEntry        = newGuard("entry of another term")
	SecondFounding   = newGuard("second founding")
	TimeBack         = newGuard("stamp goes back")
	OldNote          = newGuard("wall clocks of another term")
	EarlyQuestion    = newGuard("early question outlived")
	MixedAnswer      = newGuard("mixed answer of two leaders")
	LateAnswer       = newGuard("late answer")
	DisputedAnswer   = newGuard("answer in dispute")
	ForeignCall      = newGuard("forwarded to a former leader")
	OldRound         = newGuard("quorum round of another term")
	Deposed          = newGuard("quorum round finds a later term")
	Unapplied        = newGuard("committed and not applied")
	ElectedTwice     = newGuard("term changed while becoming leader")
	LateImage        = newGuard("late image")
	ReplacedTable    = newGuard("table replaced during a snapshot")
	InvitedElsewhere = newGuard("invitation of a member")
	FoundedAround    = newGuard("founding beside a cluster")
	JoinForOther     = newGuard("join for another node")
	LostState        = newGuard("join under a member's id")
	SpentID          = newGuard("join under a spent id")
	AddressTaken     = newGuard("join at a member's address")
	NotTakenIn       = newGuard("election without being taken in")
)
