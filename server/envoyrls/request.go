package envoyrls

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

const (
	// wholeKey is the key of a descriptor whose entries all name the policy: all its requests share one limiter.
	wholeKey = "all"
	// overrideKey begins the keys of limiters whose limit comes with the descriptor.
	overrideKey = "rls|"
	// priorityEntry is the key of an entry that carries the priority of a request. The entry is part of neither policy
	// nor key. Only Envoy's configuration selects the keys of entries and the sources of their values.
	priorityEntry = "weir_priority"
	// rlsKeyBytes bounds a key that is not hashed. With overrideKey and a policy name in front, it is still a valid
	// key.
	rlsKeyBytes = 256
	// rlsHashBytes of SHA-256 replace a key that is too long, and rlsNameBytes end a name that is too long. Names come
	// from a configuration, but keys may come from an attacker.
	rlsHashBytes = 16
	rlsNameBytes = 4
)

// namingEntries are the keys of entries whose values come from Envoy's configuration: generic_key, header_value_match
// and query_parameter_value_match.
var namingEntries = map[string]bool{"generic_key": true, "header_match": true, "query_match": true}

// rlsUnits maps units to durations as the reference service does: a month has 30 days and a year 365.
var rlsUnits = map[rlspb.Unit]time.Duration{
	rlspb.Unit_SECOND: time.Second, rlspb.Unit_MINUTE: time.Minute, rlspb.Unit_HOUR: time.Hour, rlspb.Unit_DAY: day,
	rlspb.Unit_WEEK: 7 * day, rlspb.Unit_MONTH: 30 * day, rlspb.Unit_YEAR: 365 * day,
}

const day = 24 * time.Hour

// rlsRequest is a call: one decision per descriptor, in order.
type rlsRequest struct {
	names []string // of the descriptors' policies
	Ops   []engine.Op
	ds    []engine.Decision
}

// checkRequest returns the error of a call that has no domain, no descriptor or too many.
func checkRequest(in *rlspb.Request) error {
	n := len(in.Descriptors)
	switch {
	case len(in.Domain) == 0:
		return resp.Error("ERR the domain must not be empty")
	case n == 0 || n > MaxDescriptors:
		return resp.Error(fmt.Sprintf("ERR there must be 1 to %d descriptors, not %d", MaxDescriptors, n))
	}
	return nil
}

// readRequest parses a call. Envoy may admit a request whose call failed, so only errors of Envoy's configuration are
// rejected, and no error that a client can cause.
func readRequest(in *rlspb.Request) (*rlsRequest, error) {
	n := len(in.Descriptors)
	from := rlsFrom(in.Descriptors)
	q := &rlsRequest{names: make([]string, n), Ops: make([]engine.Op, n), ds: make([]engine.Decision, n)}
	for i, d := range in.Descriptors {
		entries, high := rlsPriority(d.Entries)
		name, key := policyOf(in.Domain, entries), keyOf(entries)
		op := engine.Op{Code: engine.OpCheck, Text: []byte(name), Key: []byte(key), Cost: rlsHits(in, d),
			High: high, From: from}
		if d.Limit != nil {
			if err := overrideLimit(&op, name, key, d.Limit); err != nil {
				return nil, err
			}
		}
		q.names[i], q.Ops[i] = name, op
	}
	return q, nil
}

// remoteAddress is the key of the entry with the address of Envoy's client.
const remoteAddress = "remote_address"

// rlsFrom returns the key of a block EVERYWHERE for the client's address, which applies to all descriptors of a call.
// It returns nil if no descriptor has the address.
func rlsFrom(all []*rlspb.Descriptor) []byte {
	for _, d := range all {
		for _, e := range d.Entries {
			if string(e.Key) != remoteAddress {
				continue
			}
			if client, ok := arg.Client(string(e.Value)); ok {
				return []byte(arg.AddressPrefix + client)
			}
		}
	}
	return nil
}

// rlsHits returns the cost of a descriptor. Its own cost has precedence, where 0 is a dry run. The cost of the call is
// next, where 0 means 1.
func rlsHits(in *rlspb.Request, d *rlspb.Descriptor) int64 {
	if d.HitsAddend != nil {
		return int64(min(d.HitsAddend.Value, engine.MaxUnits))
	}
	return int64(max(in.HitsAddend, 1))
}

// rlsPriority removes the priority from the entries of a descriptor. A client may control the value, so every value but
// "high" is normal, in other letters too, and no value is an error.
func rlsPriority(all []*rlspb.Entry) (others []*rlspb.Entry, high bool) {
	for _, e := range all {
		if string(e.Key) == priorityEntry {
			high = string(e.Value) == "high"
		} else {
			others = append(others, e)
		}
	}
	return others, high
}

// policyOf returns the policy name of a descriptor: the domain and, for each entry, the word from Envoy's
// configuration.
func policyOf(domain []byte, entries []*rlspb.Entry) string {
	words := [][]byte{domain}
	for _, e := range entries {
		word := e.Key
		if namingEntries[string(e.Key)] {
			word = e.Value
		}
		words = append(words, word)
	}
	name := strings.Map(policyRune, string(bytes.Join(words, []byte{':'})))
	if len(name) > engine.MaxPolicyLen {
		hash := hashed(name, rlsNameBytes)
		name = name[:engine.MaxPolicyLen-len(hash)-1] + "." + hash
	}
	return name
}

// hashed returns n bytes of the SHA-256 of a text in hexadecimal, in place of a text that is too long.
func hashed(text string, n int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:n])
}

// policyRune maps a character to one that a policy name may contain.
func policyRune(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("-_.:", r):
		return r
	}
	return '_'
}

// appendEscaped appends a part of a key, in which it escapes the separator of the parts.
func appendEscaped(key, part []byte) []byte {
	for _, c := range part {
		switch c {
		case '%':
			key = append(key, "%25"...)
		case '|':
			key = append(key, "%7C"...)
		default:
			key = append(key, c)
		}
	}
	return key
}

// keyOf returns the key of a descriptor: the values of all entries that do not name the policy.
func keyOf(entries []*rlspb.Entry) string {
	var values []string
	for _, e := range entries {
		if !namingEntries[string(e.Key)] {
			values = append(values, arg.KeyOf(string(e.Value)))
		}
	}
	key := wholeKey
	switch len(values) {
	case 0:
	case 1:
		key = values[0]
	default:
		for i := range values {
			values[i] = string(appendEscaped(nil, []byte(values[i])))
		}
		key = strings.Join(values, "|")
	}
	switch {
	case key == "":
		return service.AnonymousKey
	case len(key) > rlsKeyBytes || engine.Reserved([]byte(key)), engine.IsStored([]byte(key)):
		return "#" + hashed(key, rlsHashBytes)
	}
	return key
}

// overrideLimit makes op a decision under l, the limit that the descriptor itself carries, in place of a check of a
// policy. The windows are fixed and aligned to the clock.
func overrideLimit(op *engine.Op, name, key string, l *rlspb.Override) error {
	var err error
	if op.Limit, err = fixedWindow(l.RequestsPerUnit, l.Unit); err != nil {
		return err
	}
	op.High = false // priorities belong to policies
	op.Code, op.Text, op.Key = engine.OpTake, nil, []byte(overrideKey+name+"|"+key)
	if l.RequestsPerUnit == 0 { // admit nothing, not even a dry run
		op.Cost = max(op.Cost, 1)
	}
	return nil
}

// fixedWindow returns the limit of a descriptor or of the configuration: windows begin at multiples of their length
// since 1970.
func fixedWindow(most uint32, unit rlspb.Unit) (engine.Limit, error) {
	window, known := rlsUnits[unit]
	if !known {
		return engine.Limit{}, resp.Error("ERR the unit of a descriptor's limit must be SECOND, MINUTE, HOUR, DAY, " +
			"WEEK, MONTH or YEAR, not " + unit.String())
	}
	return engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Aligned, WindowNs: int64(window),
		Max: int64(most)}, nil
}
