package commands

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// A program that gets an error where Redis would count often goes on without a limit. So each refusal of something
// that weir does not support is counted and, once for each client, logged: see service.Unsupported. No argument of a
// client gets there, because it may be a secret.

// unsupported is the error about a request that weir does not support.
type unsupported struct {
	service.Unsupported
	reply resp.Error // to the client; may repeat arguments
}

func (u unsupported) Error() string { return string(u.reply) }
func (u unsupported) Unwrap() error { return u.reply }

// lacks returns an error of a kind. The advice is the reply itself if advice is empty; then the reply must not repeat
// arguments.
func lacks(kind string, reply error, advice string) unsupported {
	text := service.ErrorText(reply)
	if advice == "" {
		_, advice, _ = strings.Cut(text, " ")
	}
	return unsupported{service.Unsupported{Kind: kind, Advice: advice}, resp.Error(text)}
}

// unknownSum returns the error about EVALSHA of an unknown SHA-1. Libraries then send the text of the script.
func unknownSum(sha1 []byte) error {
	err := lacks(service.LacksScript, errNoScript, "send the text of the script by EVAL; "+scriptNatives)
	var sum [20]byte
	if _, bad := hex.Decode(sum[:], sha1[:min(len(sha1), hex.EncodedLen(len(sum)))]); bad == nil {
		err.SHA1 = hex.EncodeToString(sum[:])
	}
	err.Retried = true
	return err
}

// lacksScript returns an error about the script with a SHA-1.
func lacksScript(sum string, reply resp.Error) error {
	err := lacks(service.LacksScript, reply, "")
	err.SHA1 = sum
	return err
}

// fixedRefusals are the errors about something that weir does not support whose text is always the same.
var fixedRefusals = map[resp.Error]string{
	errDBIndex: service.LacksDatabase, errByFloat: service.LacksOption,
	errWatch: service.RefusesCommand, errPublish: service.RefusesCommand, errCaching: service.RefusesCommand,
	errTracking: service.RefusesCommand, errNoConfigFile: service.RefusesCommand, errNoShutdown: service.RefusesCommand,
	errAlone: service.RefusesCommand, errMultiTooLong: service.PassesBound, errTooManyKeys: service.PassesBound,
	service.ErrValueTooLong: service.PassesBound,
}

// probes are what client libraries send on their own, so nothing that a program wants is missing: redis-py 8.1.0 and
// go-redis 9.23.0 send CLIENT MAINT_NOTIFICATIONS when they connect, and expect its refusal; rueidis 1.0.79 sends
// SUNSUBSCRIBE, without a subscription, when it takes a connection back.
var probes = []string{"client|maint_notifications", "sunsubscribe"}

// noteUnsupported records err if it is about something that weir does not support. cmd is the refused command, or nil
// if err names it. A client that has not logged in leaves no trace.
func (s *Session) noteUnsupported(cmd *command, err error) {
	var found unsupported
	if s.user == nil || s.about.Addr == "" {
		return
	}
	if !errors.As(err, &found) {
		text, isReply := err.(resp.Error)
		kind, fixed := fixedRefusals[text]
		if !isReply || !fixed {
			return
		}
		found = lacks(kind, text, "")
	}
	if found.Command == "" && cmd != nil {
		found.Command = cmd.Full
	}
	if !slices.Contains(probes, found.Command) {
		s.srv.Refuse(&s.about, found.Unsupported)
	}
}

// unresolved describes a command line that names no command: cmd is nil for an unknown command, the container for an
// unknown subcommand, and otherwise the command whose number of arguments differs. reply is what the client gets.
func unresolved(cmd *command, args [][]byte, reply error) error {
	switch {
	case cmd == nil:
		err := lacks(service.LacksCommand, reply, adviceOn(args[0]))
		err.Command = listedName(args[0], service.OtherCommand)
		return err
	case cmd.subs != nil && len(args) > 1 && cmd.sub(args[1]) == nil:
		err := lacks(service.LacksSubcommand, reply, "send only the subcommands that "+cmd.name+" HELP lists")
		err.Command = listedName([]byte(cmd.name+"|"+string(args[1])), cmd.Full)
		return err
	}
	return reply
}

// adviceOn says what to do instead of an unknown command.
func adviceOn(name []byte) string {
	if dataCommands[strings.ToUpper(string(name))] {
		return keepsLimits
	}
	return "use one of the commands that `weir help` lists; docs/migrating.md says what replaces which"
}

// keepsLimits tells what replaces a command on data.
const keepsLimits = "weir keeps limits, and no hashes, lists, sorted sets or streams: docs/migrating.md says what " +
	"replaces them"

// listedName returns the name of a command or subcommand of Redis in lower case, or other for any other name.
func listedName(name []byte, other string) string {
	if len(name) > maxListedName {
		return other
	}
	upper := strings.ToUpper(string(name))
	if dataCommands[upper] || otherCommands[upper] {
		return strings.ToLower(upper)
	}
	return other
}

// maxListedName is at least as long as every name of the lists.
const maxListedName = 40

func namesOf(list string) map[string]bool {
	names := make(map[string]bool)
	for _, name := range strings.Fields(list) {
		names[name] = true
	}
	return names
}

// dataCommands are the commands of Redis, and of modules that are often loaded, about kinds of data that weir does not
// keep. A similar name of weir would mislead.
var dataCommands = namesOf(`
	HSET HGET HMSET HMGET HDEL HINCRBY HINCRBYFLOAT HKEYS HVALS HLEN HEXISTS HSETNX HSCAN HSTRLEN HRANDFIELD HGETALL
	HEXPIRE HPEXPIRE HEXPIREAT HPEXPIREAT HPERSIST HEXPIRETIME HPEXPIRETIME HTTL HPTTL HGETEX HGETDEL HSETEX
	ZADD ZCARD ZCOUNT ZINCRBY ZRANGE ZRANGEBYSCORE ZRANGEBYLEX ZRANGESTORE ZREVRANGE ZREVRANGEBYSCORE ZREVRANGEBYLEX
	ZREM ZREMRANGEBYSCORE ZREMRANGEBYRANK ZREMRANGEBYLEX ZSCORE ZMSCORE ZRANK ZREVRANK ZSCAN ZPOPMIN ZPOPMAX ZMPOP
	BZPOPMIN BZPOPMAX BZMPOP ZUNION ZUNIONSTORE ZINTER ZINTERSTORE ZINTERCARD ZDIFF ZDIFFSTORE ZLEXCOUNT ZRANDMEMBER
	LPUSH LPUSHX RPUSH RPUSHX LPOP RPOP LMPOP BLMPOP LLEN LRANGE LTRIM LREM LSET LINDEX LINSERT LPOS LMOVE RPOPLPUSH
	BRPOPLPUSH BLPOP BRPOP BLMOVE
	XADD XREAD XRANGE XREVRANGE XLEN XDEL XDELEX XTRIM XACK XACKDEL XSETID XGROUP XREADGROUP XPENDING XCLAIM XAUTOCLAIM
	XINFO
	SUNION SUNIONSTORE SINTER SINTERSTORE SINTERCARD SDIFF SDIFFSTORE SMOVE SPOP SRANDMEMBER SADD SREM SISMEMBER
	SMISMEMBER SMEMBERS SSCAN SCARD
	PFADD PFCOUNT PFMERGE GEOADD GEOSEARCH GEOSEARCHSTORE GEORADIUS GEORADIUS_RO GEORADIUSBYMEMBER
	GEORADIUSBYMEMBER_RO GEODIST GEOPOS GEOHASH SETBIT GETBIT BITCOUNT BITFIELD BITFIELD_RO BITOP BITPOS SORT SORT_RO
	VADD VSIM VREM VCARD VDIM VEMB VLINKS VINFO VGETATTR VSETATTR VRANDMEMBER VISMEMBER
	JSON.SET JSON.GET JSON.MGET JSON.DEL JSON.NUMINCRBY JSON.ARRAPPEND JSON.TYPE
	BF.ADD BF.MADD BF.EXISTS BF.MEXISTS BF.RESERVE BF.INSERT CF.ADD CF.ADDNX CF.EXISTS CF.DEL CF.RESERVE
	CMS.INITBYDIM CMS.INITBYPROB CMS.INCRBY CMS.QUERY TOPK.ADD TOPK.RESERVE TOPK.QUERY TOPK.LIST TDIGEST.ADD
	TDIGEST.CREATE TDIGEST.QUANTILE TS.ADD TS.CREATE TS.INCRBY TS.DECRBY TS.GET TS.RANGE TS.MADD FT.SEARCH FT.CREATE
	FT.AGGREGATE FT._LIST FT.INFO`)

// otherCommands are the other commands of Redis that weir lacks, and the subcommands of Redis' commands.
var otherCommands = namesOf(`
	BGREWRITEAOF COPY DELEX DIGEST DUMP EVAL_RO EVALSHA_RO EXPIRETIME FAILOVER FCALL FCALL_RO FUNCTION GETRANGE
	INCRBYFLOAT LCS LOLWUT MIGRATE MODULE MOVE MSET MSETEX MSETNX PEXPIRETIME PFDEBUG PFSELFTEST PSYNC RENAME RENAMENX
	REPLCONF REPLICAOF RESTORE RESTORE-ASKING SETRANGE SLAVEOF SPUBLISH SSUBSCRIBE SUBSTR SUNSUBSCRIBE SWAPDB
	SYNC TOUCH WAITAOF
	ACL|DELUSER ACL|DRYRUN ACL|LOG ACL|SAVE ACL|SETUSER CLIENT|MAINT_NOTIFICATIONS CLIENT|UNBLOCK CLUSTER|ADDSLOTS
	CLUSTER|ADDSLOTSRANGE CLUSTER|BUMPEPOCH CLUSTER|COUNT-FAILURE-REPORTS CLUSTER|DELSLOTS CLUSTER|DELSLOTSRANGE
	CLUSTER|FAILOVER CLUSTER|FLUSHSLOTS CLUSTER|FORGET CLUSTER|MEET CLUSTER|MIGRATION CLUSTER|MYSHARDID
	CLUSTER|REPLICATE CLUSTER|RESET CLUSTER|SAVECONFIG CLUSTER|SET-CONFIG-EPOCH CLUSTER|SETSLOT CLUSTER|SLAVES
	CLUSTER|SLOT-STATS DEBUG|JMAP DEBUG|OBJECT DEBUG|POPULATE DEBUG|RELOAD DEBUG|SEGFAULT DEBUG|SET-ACTIVE-EXPIRE
	LATENCY|GRAPH MEMORY|DOCTOR MEMORY|MALLOC-STATS MEMORY|PURGE MEMORY|STATS OBJECT|FREQ OBJECT|IDLETIME
	OBJECT|REFCOUNT PUBSUB|SHARDCHANNELS PUBSUB|SHARDNUMSUB SCRIPT|DEBUG SCRIPT|SHOW`)
