package resp

// Limits of one command, and of the memory for reading. They hold before authentication as well, and are applied before
// any memory is allocated for a command.
const (
	// MaxArgs bounds the arguments of one command, including its name. The longest useful command, a policy or a reset
	// of many keys, is far shorter.
	MaxArgs = 1024
	// commandRoomBytes is the size of a command beyond one argument of maximum size: MaxArgs arguments of a kilobyte
	// each.
	commandRoomBytes = 1 << 20
	// maxInlineBytes bounds an inline command, which a person types.
	maxInlineBytes = 4 << 10
	// maxHeaderBytes bounds the digits and the line end after '*' or '$'. A 64-bit number takes 20.
	maxHeaderBytes = 32
	// preAuthArgs and PreAuthBulkBytes bound a command before AUTH. They suffice for HELLO 3 AUTH user password SETNAME
	// name, and are useless for an attack.
	preAuthArgs      = 10
	PreAuthBulkBytes = 1 << 10
	// keptArgs is the number of argument slots that an idle connection keeps.
	keptArgs = 32

	// The read buffer begins with SmallReadBytes inside the connection, which suffices for an idle client or a client
	// without pipelines. It moves to a pooled buffer when a read fills it.
	SmallReadBytes  = 512
	MediumReadBytes = 16 << 10
	largeReadBytes  = 64 << 10
	// MaxPooledBytes bounds the pooled read buffers of all connections: one large buffer for each of the default
	// maximum number of clients. If more clients are allowed, further connections keep smaller buffers meanwhile. Only
	// a command that does not fit its buffer is then refused.
	MaxPooledBytes = 10_000 * largeReadBytes
	// MaxOversizeBytes bounds the read buffers beyond largeReadBytes of all connections. Commands of that size are
	// rare, and ten thousand unfinished ones must not exhaust the memory.
	MaxOversizeBytes = 256 << 20
)
