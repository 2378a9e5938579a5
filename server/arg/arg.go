package arg

import (
	"strconv"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/server/resp"
)

// Errors whose texts clients compare. The texts are identical to Redis' texts.
const (
	ErrSyntax     resp.Error = "ERR syntax error"
	ErrNotInteger resp.Error = "ERR value is not an integer or out of range"
)

// ErrReservedKey rejects a key that only the limiters of policies may have.
const ErrReservedKey resp.Error = "ERR keys that begin with 'policy|' belong to the limiters of policies: use " +
	"RL.CHECK, or choose another key"

// errStoredName rejects a key that only weir itself makes, for a database other than 0.
const errStoredName resp.Error = `ERR keys that begin with "\x00db", a digit and a bar are reserved: choose another key`

// NotInteger returns Redis' error with the name of the argument and the accepted values.
func NotInteger(name, accepted string, got []byte) error {
	return ErrNotInteger + resp.Error(": "+name+" "+accepted+", not "+quote.Text(got))
}

// WrongCount returns Redis' error for a wrong number of arguments, followed by the usage. full is the command in lower
// case with its container.
func WrongCount(full, usage string) error {
	return resp.Error("ERR wrong number of arguments for '" + full + "' command: " + usage)
}

// UnknownSubcommand returns Redis' error for a subcommand that the container parent does not have.
func UnknownSubcommand(parent string, sub []byte) error {
	return resp.Error("ERR unknown subcommand '" + quote.Printable(sub, quote.MaxBytes) +
		"'. Try " + parent + " HELP.")
}

// Fits reports whether n arguments, including the name, match an arity. A negative arity is a minimum.
func Fits(arity, n int) bool {
	if arity >= 0 {
		return n == arity
	}
	return n >= -arity
}

// CheckKey checks a key from a client: it has 1 to engine.MaxKeyLen bytes, or up to engine.MaxNameLen for the name of a
// limiter of a policy, and is no stored name of a database.
func CheckKey(key []byte) error {
	if len(key) > 0 && len(key) <= engine.MaxKeyLen && key[0] != 0 && key[0] != 'p' {
		return nil // nearly always
	}
	return checkKey(key)
}

func checkKey(key []byte) error {
	if len(key) == 0 || len(key) > engine.MaxKeyLen && (!engine.Reserved(key) || len(key) > engine.MaxNameLen) {
		return lengthError("key", engine.MaxKeyLen, key)
	}
	if engine.IsStored(key) {
		return errStoredName
	}
	return nil
}

// CheckHoldID checks the id of a hold.
func CheckHoldID(id []byte) error {
	if engine.IsStored(id) {
		return errStoredName
	}
	return CheckText("id", id, engine.MaxIDLen)
}

// InDatabase puts an operation into a database other than 0. It checks what is only valid in database 0: names that
// are too long with the mark of a database, and blocks of all databases.
func InDatabase(op *engine.Op, database uint8) error {
	op.Database = database
	most := engine.MaxDatabaseKeyLen
	switch op.Code {
	case engine.OpPolicy:
		return nil
	case engine.OpBlockEverywhere:
		return resp.Error("ERR a block EVERYWHERE belongs to all databases: send it in database 0")
	case engine.OpUnblock:
		op.High = true // a block everywhere stays
	case engine.OpCommit, engine.OpCancel, engine.OpExtend:
		if len(op.Key) > engine.MaxDatabaseIDLen {
			return lengthError("id", engine.MaxDatabaseIDLen, op.Key)
		}
	case engine.OpReserve:
		if len(op.ID) > engine.MaxDatabaseIDLen {
			return lengthError("id", engine.MaxDatabaseIDLen, op.ID)
		}
		if n := engine.MaxHoldBytes - (1+len(op.Also))*(engine.MaxKeyLen-most); op.HoldBytes() > n {
			return resp.Error("ERR in a database other than 0 the policies and keys of a hold must be at most " +
				strconv.Itoa(n) + " bytes together, not " + strconv.Itoa(op.HoldBytes()))
		}
	}
	key := op.Key
	if _, _, of, ok := engine.SplitName(key); ok {
		key = of
	}
	if len(key) > most {
		return lengthError("key", most, key)
	}
	for i := range op.Also {
		if len(op.Also[i].Key) > most {
			return lengthError("key", most, op.Also[i].Key)
		}
	}
	return nil
}

// CheckText checks a name of 1 to most bytes.
func CheckText(name string, b []byte, most int) error {
	if len(b) == 0 || len(b) > most {
		return lengthError(name, most, b)
	}
	return nil
}

func lengthError(name string, most int, got []byte) error {
	return resp.Error("ERR " + name + " must be 1 to " + strconv.Itoa(most) + " bytes, not " + strconv.Itoa(len(got)))
}
