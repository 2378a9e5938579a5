package rule

// The largest arguments the algorithms accept. The arithmetic is proven for
// them (see arith.Uint128); package server rejects anything beyond before it asks.
const (
	// MaxUnits bounds a cost, a burst, a capacity, a maximum and the units of a
	// rate: the largest integer that every client language holds exactly.
	MaxUnits = 1 << 53
	// MaxWindowNs bounds a window, a ttl, a penalty and the time a rate is given
	// per: one leap year.
	MaxWindowNs = 366 * 24 * 3600 * int64(1e9)
	// MaxLogUnits bounds the units one exact sliding log may hold; at about six
	// bytes each the longest log is about 6 MB.
	MaxLogUnits = 1_000_000
	// MaxKeyLen bounds a key in bytes, so that one entry fits a page many times.
	MaxKeyLen = 512
	// MaxIDLen bounds an exactly-once token in bytes.
	MaxIDLen = 64
	// MaxHolderLen bounds the id of a lease holder in bytes.
	MaxHolderLen = 64
	// MaxHolders bounds the leases held on one key: finding one is a scan, and what a
	// scan of a thousand takes, some microseconds, others may wait for.
	MaxHolders = 1000
	// MaxPolicyLen bounds a policy's name in bytes.
	MaxPolicyLen = 64
	// MaxReasonLen bounds the text that explains a block, in bytes.
	MaxReasonLen = 128
	// MaxSteps bounds the penalty steps of one strike limit.
	MaxSteps = 16
)
