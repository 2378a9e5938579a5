package rule

// These are the largest arguments that the algorithms accept. The arithmetic is proven for them (see arith.Uint128).
// The server rejects larger arguments before it calls the engine.
const (
	// MaxUnits bounds a cost, a burst, a capacity, a maximum and the units of a
	// rate: the largest integer that every client language holds exactly.
	MaxUnits = 1 << 53
	// MaxWindowNs bounds a window, a TTL, a penalty and the period of a rate: one leap year.
	MaxWindowNs = 366 * 24 * 3600 * int64(1e9)
	// MinGivenNs is the shortest window, TTL or penalty that a client may give. A shorter one is a mistake about the
	// unit, and limits nothing. The engine computes with every window from 1 ns, because older versions stored them.
	MinGivenNs = int64(1e6)
	// MaxLogUnits bounds the units in one sliding log. At about six bytes per unit, the longest log has about 6 MB.
	MaxLogUnits = 1_000_000
	// MaxKeyLen bounds a key in bytes, so that many entries fit a page.
	MaxKeyLen = 512
	// MaxIDLen bounds an idempotency key in bytes.
	MaxIDLen = 64
	// MaxHolderLen bounds the id of a lease holder in bytes.
	MaxHolderLen = 64
	// MaxHolders bounds the leases on one key. To find a lease is a scan, and a scan of a thousand leases delays
	// other decisions by some microseconds.
	MaxHolders = 1000
	// MaxAllocations bounds the allocations of holds in one limiter. A hold that was extended may have several. The
	// bound keeps the release of all of them, when they end at once, near a second.
	MaxAllocations = 1 << 20
	// MaxPolicyLen bounds a policy's name in bytes.
	MaxPolicyLen = 64
	// MaxReasonLen bounds the text that explains a block, in bytes.
	MaxReasonLen = 128
	// MaxSteps bounds the penalty steps of one strike limit.
	MaxSteps = 16
)
