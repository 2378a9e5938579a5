package commands

import (
	"fmt"
	"strings"

	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// These are the error texts of the commands. Texts that clients compare with are Redis' own.
const (
	errHelloNoAuth resp.Error = "NOAUTH HELLO must be called with the client already authenticated, otherwise the " +
		"HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP " +
		"protocol version at the same time"
	errNoPassword resp.Error = "ERR AUTH <password> called without any password configured for the default user. " +
		"Are you sure your configuration is correct?"
	errNoUsersFile  resp.Error = "ERR this server has no users file to load, it was started without --users-file"
	errNoProto      resp.Error = "NOPROTO unsupported protocol version: protover must be 2 or 3"
	errProtoInteger resp.Error = "ERR Protocol version is not an integer or out of range: protover must be 2 or 3"
	errDBIndex      resp.Error = "ERR DB index is out of range: index must be 0 to 15"
	errNoSuchClient resp.Error = "ERR No such client"
	errNoCluster    resp.Error = "ERR This instance has cluster support disabled"
	errNotMaster    resp.Error = "ERR The specified node is not a master"
	errBadSlot      resp.Error = "ERR Invalid or out of range slot: slot must be a whole number from 0 to 16383"

	errMultiNested  resp.Error = "ERR MULTI calls can not be nested"
	errExecNoMulti  resp.Error = "ERR EXEC without MULTI"
	errDiscardMulti resp.Error = "ERR DISCARD without MULTI"
	errExecAbort    resp.Error = "EXECABORT Transaction discarded because of previous errors."
	errNotInMulti   resp.Error = "ERR Command not allowed inside a transaction"
	errMultiTooLong resp.Error = "ERR a transaction holds at most 1024 operations, 1 MiB of arguments, each " +
		"counting 32 bytes more than it has, and answers with 4 MiB of strings, each counted as --max-value-bytes"
	errExecTooLong resp.Error = "ERR the replies of this transaction are longer than 1 MiB, so this command was not " +
		"executed"
	errWatch resp.Error = "ERR WATCH is not supported: EXEC runs everything in one atomic step, so there is nothing " +
		"to watch"
	errPublish       resp.Error = "ERR PUBLISH is not supported: only the server publishes to channels"
	errTooManyTopics resp.Error = "ERR a client may subscribe to at most 128 channels and patterns"

	errTooManyKeys resp.Error = "ERR KEYS matches more than 10000 keys, use SCAN"
	errPatternLong resp.Error = "ERR pattern must be at most 512 bytes"

	errNoDebug     resp.Error = "ERR DEBUG is not enabled on this server"
	errRealClock   resp.Error = "ERR the server uses the real clock, and only a test clock can be moved"
	errClockBack   resp.Error = "ERR the clock cannot be set back"
	errNoShutdown  resp.Error = "ERR SHUTDOWN is not supported on this server, stop its process instead"
	errNotStopping resp.Error = "ERR No shutdown in progress."
	errSaving      resp.Error = "ERR Background save already in progress"
	errNoBackup    resp.Error = "ERR no backup is running on this connection, begin with WEIR.BACKUP START; a backup " +
		"ends when nobody reads from it for a minute"
	errBackingUp    resp.Error = "ERR another backup is running, only one can run at a time"
	errCannotBackUp resp.Error = "ERR this server has no state that can be backed up"
	errNoConfigFile resp.Error = "ERR The server is running without a config file"
	errCaching      resp.Error = "ERR CLIENT CACHING is not supported: weir sends no invalidations, so nothing " +
		"may be cached"
	errTracking resp.Error = "ERR CLIENT TRACKING ON is refused without OPTIN: weir sends no invalidations, so a " +
		"client that caches replies would not see a count change; switch the client's cache off"
	errByFloat     resp.Error = "ERR BYFLOAT is not supported: weir counts whole units, use BYINT"
	errDialectRate resp.Error = "ERR count per period must be at least 1 unit in 366 days and at most " +
		"9007199254740992 units a nanosecond"
)

// wrongArity returns the error for a wrong number of arguments of a command. The example of a decision shows which
// number is the time. weir may lack an option of a command of Redis; anything else is a typing error.
func wrongArity(cmd *command) error {
	usage := cmd.usage()
	if cmd.group == groupDecide && len(cmd.shown) > 0 {
		usage += ", like " + cmd.shown[0].send
	}
	err := arg.WrongCount(cmd.Full, usage)
	if cmd.arity < 0 || strings.HasPrefix(cmd.name, "RL.") {
		return err
	}
	return lacks(service.LacksOption, err, "")
}

// syntaxError returns Redis' own text, followed by the usage.
func syntaxError(cmd *command) error {
	return lacks(service.LacksOption, arg.ErrSyntax+resp.Error(": "+cmd.usage()), "")
}

// unknownCommand returns Redis' own text, including its limit of 128 characters.
func unknownCommand(args [][]byte) error {
	const most = 128
	text := "ERR unknown command '" + quote.Printable(args[0], most) + "', with args beginning with: "
	room := most
	for _, a := range args[1:] {
		if room <= 0 {
			break
		}
		shown := quote.Printable(a, room)
		text += "'" + shown + "' "
		room -= len(shown) + len("'' ")
	}
	return resp.Error(text)
}

// moved returns the redirect of an operation on key to another node. It contains the hash slot of the key, because some
// clients update their map of slots from the reply.
func moved(to service.Elsewhere, key []byte) error {
	return resp.Error(fmt.Sprintf("MOVED %d %s", hashslot.Of(key), string(to)))
}

// forKey converts err to the redirect of an operation on key if err is a service.Elsewhere. It returns any other err
// unchanged.
func forKey(err error, key []byte) error {
	if to, ok := err.(service.Elsewhere); ok {
		return moved(to, key)
	}
	return err
}
