package bench

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"

	"github.com/weir-project/weir/bench/servers"
)

// Target is a contender: a server, and its command for each workload.
type Target struct {
	Name   string
	Server servers.Server
	// Commands holds one command for each workload. A target without a command for a workload does not take part in its
	// scenarios.
	Commands map[Workload]Command
	// Settle is a command that makes a server finish deferred work, such as saving its changes. It is sent to every
	// node after every load, and its cost counts to the load. Empty for none.
	Settle []string
	// Keeps means that the server cannot or must not be emptied.
	Keeps bool
}

const (
	// keyPlaceholder is replaced by the key in a command template.
	keyPlaceholder = "{key}"
	// shaPlaceholder is replaced by the digest of the template's script.
	shaPlaceholder = "{sha}"
	// keyPrefix is the prefix of every key. With the 12 digits that redis-benchmark appends, a key has 16 bytes.
	keyPrefix = "key:"
)

// Command is the template of a request.
type Command struct {
	Args   []string // holds keyPlaceholder, and shaPlaceholder when it has a Script
	Script string   // Lua, loaded with SCRIPT LOAD before a scenario; empty for none
	Before []string // a command that is sent before a scenario, such as one that sets a policy; empty for none
	Reply  Reply    // reads its answer
}

// For returns the request for a key.
func (c Command) For(key string) []string {
	fill := strings.NewReplacer(keyPlaceholder, key, shaPlaceholder, scriptSHA(c.Script))
	return mapOf(c.Args, fill.Replace)
}

// scriptSHA returns the digest under which a server keeps a script.
func scriptSHA(script string) string {
	sum := sha1.Sum([]byte(script)) // the definition of EVALSHA
	return hex.EncodeToString(sum[:])
}

// offers reports whether a target has a command for a load.
func (t Target) offers(l Load) bool {
	_, ok := t.Commands[l.Workload]
	return ok
}
