package commands

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// Operators delete all limiters that a pattern matches by a line of Lua that hands what KEYS
// answers to DEL. weir knows this line with any literal pattern in it, and does the same: it
// looks for the keys and then resets them, in that order, with other commands perhaps in
// between. It is known to EVAL only, because its text differs with the pattern.

const (
	deleteAllBegin = "return redis.call('del', unpack(redis.call('keys', '"
	deleteAllEnd   = "')))"
)

// errAlone is what the plan of a command answers to arguments that its function alone carries
// out. In a transaction, which is one step, that is refused.
const errAlone resp.Error = "ERR a script that deletes what KEYS matches can not be a part of MULTI"

// deleteAllPattern returns the pattern of the line that deletes all keys that match it.
func deleteAllPattern(text []byte) (pattern []byte, ok bool) {
	pattern, begins := bytes.CutPrefix(text, []byte(deleteAllBegin))
	pattern, ends := bytes.CutSuffix(pattern, []byte(deleteAllEnd))
	literal := !bytes.ContainsAny(pattern, "'\\\r\n\x00")
	return pattern, begins && ends && literal && len(pattern) <= maxPatternBytes
}

// runDeleteAll carries the line out: EVAL script numkeys [key ...] [arg ...].
func runDeleteAll(s *Session, args [][]byte) {
	pattern, _ := deleteAllPattern(args[1])
	_, err := scriptKeys(args[2:])
	if err == nil {
		err = s.srv.ReadIndex()
	}
	if err == nil {
		err = forKey(s.srv.Redirect(), pattern)
	}
	var names [][]byte
	if err == nil {
		names, err = s.namesLike(pattern)
	}
	if err == nil && len(names) == 0 {
		sum := sha1.Sum(args[1])
		err = resp.Error("ERR Wrong number of args calling Redis command from script script: " + hex.EncodeToString(sum[:]) + ", on @user_script:1.")
	}
	deleted := int64(0)
	for len(names) > 0 && err == nil {
		n := min(len(names), MaxBatch/2) // a name may take two operations
		var some int64
		some, err = s.deleteNames(names[:n])
		deleted, names = deleted+some, names[n:]
	}
	if s.guarded(err) {
		s.Int(deleted)
	}
}

// namesLike returns the names that match a pattern, all of which the user may use.
func (s *Session) namesLike(pattern []byte) ([][]byte, error) {
	found := s.newKeyList(pattern, func(key []byte, _ engine.Algorithm) bool { return engine.MatchGlob(pattern, key) })
	found.listed = true
	for cursor, more := uint64(0), true; more && found.n <= maxKeysReply; more = cursor != 0 {
		cursor = s.srv.Limiter.Scan(cursor, keysStep, found.visit)
		found.sift()
	}
	if found.n > maxKeysReply {
		return nil, errTooManyKeys
	}
	for _, name := range found.names {
		if u := s.limits; u != nil && (!u.MayUse(name) || !u.MayReach(s.srv.Limiter.Policies(), name)) {
			return nil, s.srv.Refused(service.ErrNoKey)
		}
	}
	return found.names, nil
}

// deleteNames resets what names stand for and returns how many had something to forget.
func (s *Session) deleteNames(names [][]byte) (deleted int64, err error) {
	b := s.srv.Batches.Get()
	defer s.srv.Batches.Put(b)
	waiting := s.batch
	s.batch = b
	for _, name := range names {
		if err = s.resetNamed(name, nil); err != nil {
			break
		}
	}
	s.batch = waiting
	if err != nil {
		return 0, err
	}
	ds := b.Decisions()
	if err = s.srv.Limiter.Decide(b.Ops, ds); err != nil {
		return 0, err
	}
	s.srv.Waits.NotifyGiven(b.Ops)
	return resetNames(b.Ops, ds), nil
}

// scriptKeys reads numkeys, the keys behind it and the arguments of a script.
func scriptKeys(args [][]byte) (keys int, err error) {
	n, ok := arg.Int(args[0])
	switch {
	case !ok:
		return 0, arg.NotInteger("numkeys", "must be the number of keys", args[0])
	case n < 0:
		return 0, errNegKeys
	case n > int64(len(args)-1):
		return 0, errFewKeys
	}
	return int(n), nil
}
