package engine

import "github.com/weir-project/weir/engine/internal/rule"

// reservedPrefix begins the name of every limiter that a policy keeps. Functions that read or adjust limiters by name
// work on the limiters of policies as well. Such a limiter is in the shard of its key. All limits of one key, and a
// block of the key, are under one lock.
const reservedPrefix = rule.ReservedPrefix

// MaxNameLen bounds the name of a limiter in bytes: a key, or the name of a policy's limiter.
const MaxNameLen = rule.MaxNameLen

// Reserved reports whether a key has the prefix that is reserved for the limiters of policies.
func Reserved(key []byte) bool { return rule.Reserved(key) }

// SplitName returns the parts of the name of a policy's limiter. ok is false for any other name.
func SplitName(name []byte) (policy []byte, limit int, key []byte, ok bool) {
	return rule.SplitName(name)
}

// cellPrefix returns the prefix of the names of all limiters of one limit of a policy.
func cellPrefix(policy string, limit int) string { return rule.NamePrefix(policy, limit) }
