package bench

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/weir-project/weir/bench/servers"
)

// Target is a contender: a server, and how each workload is said to it.
type Target struct {
	Name   string
	Server servers.Server
	// Commands holds one command a workload. A target without a command for a
	// workload sits that scenario out.
	Commands map[Workload]Command
	// Settle is a command that makes a server finish what it put off, like saving its
	// changes: sent to every node after every load and counted to it. Empty for none.
	Settle []string
	// Needs is a command the server must know, or the target is left out; empty for none.
	Needs string
	// Keeps says that the server cannot be emptied, or is not ours to empty.
	Keeps bool
}

const (
	// keyPlaceholder stands for the key in a command template.
	keyPlaceholder = "{key}"
	// shaPlaceholder stands for the digest of the template's script.
	shaPlaceholder = "{sha}"
	// costPlaceholder stands for the units a request takes.
	costPlaceholder = "{cost}"
	// keyPrefix begins every key. With the 12 digits redis-benchmark appends, a key
	// has 16 bytes.
	keyPrefix = "key:"
)

// Command is the template of a request.
type Command struct {
	Args   []string // holds keyPlaceholder, and shaPlaceholder when it has a Script
	Costly []string // appended when a request takes more than one unit
	Script string   // Lua, loaded with SCRIPT LOAD before a scenario; empty for none
	Reply  Reply    // reads what it answers
}

// For returns the request for a key that takes cost units.
func (c Command) For(key string, cost int) []string {
	fill := strings.NewReplacer(keyPlaceholder, key, shaPlaceholder, scriptSHA(c.Script), costPlaceholder, strconv.Itoa(cost))
	args := append([]string(nil), c.Args...)
	if cost > 1 {
		args = append(args, c.Costly...)
	}
	return mapOf(args, fill.Replace)
}

// scriptSHA is the digest under which a server keeps a script.
func scriptSHA(script string) string {
	sum := sha1.Sum([]byte(script)) // what EVALSHA is defined by
	return hex.EncodeToString(sum[:])
}

// offers says whether a target has a command for every part of a load.
func (t Target) offers(l Load) bool {
	for _, p := range l.parts() {
		if _, ok := t.Commands[p.workload]; !ok {
			return false
		}
	}
	return true
}
