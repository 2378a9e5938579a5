package engine

import "bytes"

// A policy keeps a limiter for each of its limits and keys. It is an ordinary
// limiter whose name no client may use for one of its own:
//
//	policy|<policy>|<number of the limit, from 0>|<key>
//
// So whatever looks at limiters, or settles them, works on these as well. Their
// place is the shard of the key: all limits of one key are under one lock, and so
// is a block of the key.
const reservedPrefix = "policy|"

// MaxNameLen bounds the name of a limiter in bytes: a key, or that of a limit of a
// policy.
const MaxNameLen = len(reservedPrefix) + MaxPolicyLen + len("|0|") + MaxKeyLen

// Reserved reports whether a key is one that only policies may have limiters for.
func Reserved(key []byte) bool {
	return len(key) >= len(reservedPrefix) && key[0] == reservedPrefix[0] &&
		string(key[:len(reservedPrefix)]) == reservedPrefix
}

// SplitName returns what the name of a policy's limiter consists of; ok is false
// when it is no such name.
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

// cellPrefix is what the names of the limiters of a policy's limit begin with.
func cellPrefix(policy string, limit int) string {
	return reservedPrefix + policy + "|" + string(rune('0'+limit)) + "|"
}
