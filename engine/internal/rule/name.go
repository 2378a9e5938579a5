package rule

import (
	"bytes"
	"slices"
)

// ReservedPrefix begins the name of every limiter that a policy keeps. A policy has one limiter for each of its
// limits and keys. Its name is one that no client may use:
//
//	policy|<policy>|<number of the limit, from 0>|<key>
const ReservedPrefix = "policy|"

// MaxPolicyLimits bounds the limits of one policy. Each limit is a limiter that every check finds and changes.
const MaxPolicyLimits = 8

// MaxNameLen bounds the name of a limiter in bytes: a key, or the name of a policy's limiter.
const MaxNameLen = len(ReservedPrefix) + MaxPolicyLen + len("|0|") + MaxKeyLen

// Reserved reports whether a key has the prefix that is reserved for the limiters of policies.
func Reserved(key []byte) bool {
	return len(key) >= len(ReservedPrefix) && key[0] == ReservedPrefix[0] &&
		string(key[:len(ReservedPrefix)]) == ReservedPrefix
}

// SplitName returns the parts of the name of a policy's limiter. ok is false for any other name.
func SplitName(name []byte) (policy []byte, limit int, key []byte, ok bool) {
	if !Reserved(name) {
		return nil, 0, nil, false
	}
	policy, rest, ok := bytes.Cut(name[len(ReservedPrefix):], []byte{'|'})
	if !ok || len(rest) < len("0|k") || rest[1] != '|' || rest[0] < '0' || rest[0] >= '0'+MaxPolicyLimits {
		return nil, 0, nil, false
	}
	return policy, int(rest[0] - '0'), rest[2:], true
}

// NamePrefix returns the prefix of the names of all limiters of one limit of a policy.
func NamePrefix(policy string, limit int) string {
	return string(AppendName(nil, policy, limit, nil))
}

// AppendName appends the name of the limiter of a policy's limit for a key.
func AppendName[Policy string | []byte](to []byte, policy Policy, limit int, key []byte) []byte {
	to = slices.Grow(to, len(ReservedPrefix)+len(policy)+len("|0|")+len(key))
	to = append(append(to, ReservedPrefix...), policy...)
	return append(append(to, '|', byte('0'+limit), '|'), key...)
}

// Rename makes the name of a policy's limiter the name of its limiter of another limit.
func Rename(name []byte, limit int) {
	at := len(ReservedPrefix) + bytes.IndexByte(name[len(ReservedPrefix):], '|') + 1
	name[at] = byte('0' + limit)
}
