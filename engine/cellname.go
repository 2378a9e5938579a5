package engine

import "bytes"

// reservedPrefix begins the name of every limiter that a policy keeps. A policy has one limiter for each of its
// limits and keys. It is an ordinary limiter, under a name that no client may use:
//
//	policy|<policy>|<number of the limit, from 0>|<key>
//
// Functions that read or adjust limiters by name therefore work on the limiters of policies as well. Such a
// limiter is in the shard of its key. All limits of one key, and a block of the key, are under one lock.
const reservedPrefix = "policy|"

// MaxNameLen bounds the name of a limiter in bytes: a key, or the name of a policy's limiter.
const MaxNameLen = len(reservedPrefix) + MaxPolicyLen + len("|0|") + MaxKeyLen

// Reserved reports whether a key has the prefix that is reserved for the limiters of policies.
func Reserved(key []byte) bool {
	return len(key) >= len(reservedPrefix) && key[0] == reservedPrefix[0] &&
		string(key[:len(reservedPrefix)]) == reservedPrefix
}

// SplitName returns the parts of the name of a policy's limiter. ok is false for any other name.
func SplitName(name []byte) (policy []byte, limit int, key []byte, ok bool) {
	if !Reserved(name) {
		return nil, 0, nil, false
	}
	policy, rest, ok := bytes.Cut(name[len(reservedPrefix):], []byte{'|'})
	if !ok || len(rest) < len("0|k") || rest[1] != '|' || rest[0] < '0' || rest[0] >= '0'+MaxPolicyLimits {
		return nil, 0, nil, false
	}
	return policy, int(rest[0] - '0'), rest[2:], true
}

// cellPrefix returns the prefix of the names of all limiters of one limit of a policy.
func cellPrefix(policy string, limit int) string {
	return reservedPrefix + policy + "|" + string(rune('0'+limit)) + "|"
}
