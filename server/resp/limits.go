package resp

// What one command may take on the wire, and what reading may take of memory. The limits hold
// before authentication too; what the client sends is measured against them before anything
// is allocated for it.
const (
	// MaxArgs bounds the arguments of one command, its name included. The longest
	// sensible command, a policy or a reset of many keys, stays far below.
	MaxArgs = 1024
	// commandRoomBytes is what one command may take on the wire besides one
	// argument of the largest size: MaxArgs arguments of a kilobyte each.
	commandRoomBytes = 1 << 20
	// maxInlineBytes bounds an inline command, which a person types.
	maxInlineBytes = 4 << 10
	// maxHeaderBytes bounds the digits and the line end after '*' or '$'. A 64-bit
	// number takes 20; a longer line is not a number.
	maxHeaderBytes = 32
	// preAuthArgs and PreAuthBulkBytes bound a command before AUTH: enough for
	// HELLO 3 AUTH user password SETNAME name, too little to be worth an attack.
	preAuthArgs      = 10
	PreAuthBulkBytes = 1 << 10
	// keptArgs is how many argument slots an idle connection keeps.
	keptArgs = 32

	// The read buffer starts small inside the connection, which is all an idle or
	// unpipelined client ever needs, and moves to a pooled one when reads fill it.
	SmallReadBytes  = 512
	MediumReadBytes = 16 << 10
	largeReadBytes  = 64 << 10
	// MaxPooledBytes bounds what all connections together hold in read buffers up to
	// largeReadBytes: one for each of as many clients as there are by default. Where more
	// are let in, the rest get by with smaller ones while it lasts, and only a command
	// that does not fit is refused.
	MaxPooledBytes = 10_000 * largeReadBytes
	// MaxOversizeBytes bounds what all connections together hold in read buffers
	// beyond largeReadBytes: commands of that size are rare, and ten thousand
	// clients that each begin one and never end it must not add up.
	MaxOversizeBytes = 256 << 20
)
