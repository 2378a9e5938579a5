package engine_test

import (
	"encoding/hex"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// requestOf returns a take or a check that has a value in each part of a request.
func requestOf(code engine.OpCode) engine.Op {
	op := engine.Op{Code: code, Key: []byte("k"), Cost: 3, Text: []byte("text"), TTLNs: 5, WaitNs: 7, ID: []byte("id")}
	if op.Limit = bucketOf(1, 1e9, 10); code == engine.OpCheck {
		op.Limit = engine.Limit{}
	}
	return op
}

// partsOfARequest changes each field of an operation that a fingerprint covers.
var partsOfARequest = map[string]func(*engine.Op){
	"Code":    func(op *engine.Op) { op.Code = engine.OpRelease },
	"Partial": func(op *engine.Op) { op.Partial = true },
	"High":    func(op *engine.Op) { op.High = true },
	"Keep":    func(op *engine.Op) { op.Keep = true },
	"Key":     func(op *engine.Op) { op.Key = []byte("other") },
	"Limit":   func(op *engine.Op) { op.Limit.Max++ },
	"Cost":    func(op *engine.Op) { op.Cost++ },
	"WaitNs":  func(op *engine.Op) { op.WaitNs++ },
	"TTLNs":   func(op *engine.Op) { op.TTLNs++ },
	"Text":    func(op *engine.Op) { op.Text = []byte("other") },
	"Also":    func(op *engine.Op) { op.Also = []engine.Pair{{Policy: []byte("p"), Key: []byte("k")}} },
	"Else":    func(op *engine.Op) { op.Else = 1 << 1 },
	"Calendar": func(op *engine.Op) {
		op.Calendar = &engine.Calendar{Zone: "Europe/Berlin"}
	},
}

// noPartsOfARequest are the other fields of an operation, with the reason.
var noPartsOfARequest = map[string]string{
	"Dry":      "a dry run uses no ID",
	"forced":   "set by the engine",
	"Database": "is in the stored names, and an ID belongs to a stored name",
	"ID":       "names the request",
	"Asks":     "is the fingerprint",
	"From":     "says who asks, not what: a client that moves to another network repeats its request",
	"Incr":     "no command with an increment takes an ID",
	"Policy":   "no command that changes a policy takes an ID",
	"Script":   "no script takes an ID",
}

// TestAFingerprintCoversARequest checks that each field of an operation is a part of the fingerprint, or is known not
// to be one.
func TestAFingerprintCoversARequest(t *testing.T) {
	for field := range reflect.TypeFor[engine.Op]().Fields() {
		_, part := partsOfARequest[field.Name]
		_, none := noPartsOfARequest[field.Name]
		require.True(t, part != none, "is %s a part of a request?", field.Name)
	}
	first := requestOf(engine.OpTake)
	seen := map[engine.Fingerprint]string{first.Fingerprint(): ""}
	for name, change := range partsOfARequest {
		op := requestOf(engine.OpTake)
		change(&op)
		f := op.Fingerprint()
		require.NotContains(t, seen, f, name)
		seen[f] = name
	}
	// Adjacent texts are not one.
	a, b := requestOf(engine.OpCheck), requestOf(engine.OpCheck)
	a.Text, a.Key, b.Text, b.Key = []byte("ab"), []byte("c"), []byte("a"), []byte("bc")
	require.NotEqual(t, a.Fingerprint(), b.Fingerprint())
	again := requestOf(engine.OpTake)
	again.From, again.Calendar = []byte("ip:192.0.2.1"), &engine.Calendar{EndNs: 1, NextEndNs: 2}
	same := requestOf(engine.OpTake)
	same.Calendar = &engine.Calendar{EndNs: 3, NextEndNs: 4}
	require.Equal(t, same.Fingerprint(), again.Fingerprint())
}

// TestTheBytesOfFingerprints checks fingerprints, which tokens of older versions have.
func TestTheBytesOfFingerprints(t *testing.T) {
	take, check, reset := requestOf(engine.OpTake), requestOf(engine.OpCheck), requestOf(engine.OpReset)
	check.Also, check.High, check.Partial = []engine.Pair{{Policy: []byte("p"), Key: []byte("l")}}, true, true
	for _, c := range []struct {
		op   engine.Op
		want string
	}{
		{take, "813bdbaf0db2f070feaf54361f27f4d6"},
		{check, "09d7c5afc5b2346a59d52f4c8c6bc876"},
		{reset, "043bc5af0db2f06c5fbfb2966b20f7b9"},
	} {
		f := c.op.Fingerprint()
		require.Equal(t, c.want, hex.EncodeToString(f[:]))
	}
}

// TestAnIDOfSeveralKeys checks that an ID belongs to every key of its request: a request with some of these keys, or
// with the same ones in another order, is another request.
func TestAnIDOfSeveralKeys(t *testing.T) {
	for _, shards := range []int{1, 64} {
		table, at := engine.NewTable(engine.Options{Shards: shards}), engine.Stamp{NowNs: 1e18}
		do := func(op engine.Op) engine.Decision { return decideAt(table, at, op) }
		do(setPolicy("p", ofWindow(10)))
		do(setPolicy("q", ofWindow(20)))
		named := func(id string, op engine.Op) engine.Op {
			op.ID = []byte(id)
			op.Bind()
			return op
		}
		request := named("x", check(1, "p", "a", "q", "b", "q", "a"))
		first := do(request)
		require.EqualValues(t, 1, first.Allowed)
		for name, other := range map[string]engine.Op{
			"the first pair":    check(1, "p", "a"),
			"the second pair":   check(1, "q", "b"),
			"another order":     check(1, "q", "b", "p", "a", "q", "a"),
			"one key in common": check(1, "p", "c", "q", "b"),
			"more pairs":        check(1, "p", "a", "q", "b", "q", "a", "p", "b"),
			"the last key":      check(1, "p", "d", "q", "e", "q", "b"),
		} {
			require.Equal(t, engine.OtherTerms, do(named("x", other)).Status, name)
		}
		require.Equal(t, engine.OtherTerms, do(named("x", engine.Op{Code: engine.OpForgive, Text: []byte("p"),
			Key: []byte("z"), Also: []engine.Pair{{Policy: []byte("q"), Key: []byte("b")}}})).Status)
		require.Equal(t, first, do(request))
		require.EqualValues(t, 9, do(check(0, "p", "a")).Remaining)
		require.EqualValues(t, 19, do(check(0, "q", "b")).Remaining)
		require.EqualValues(t, 1, do(named("x", check(1, "p", "c"))).Allowed, "no key in common")

		// One of the tokens is enough for a repetition.
		require.EqualValues(t, 1, do(engine.Op{Code: engine.OpForget, Key: []byte("a"), ID: []byte("x")}).Allowed)
		require.Equal(t, first, do(request))
	}
}

func ofWindow(most int64) engine.Policy {
	return engine.Policy{Limits: []engine.PolicyLimit{{Limit: windowOf(engine.FixedWindow, 60e9, most)}}}
}

// TestTokensOfOlderVersions checks that the stored answers of older versions load, and are given to every request with
// their ID. Their stored form has no fingerprint.
func TestTokensOfOlderVersions(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	older, newer := metaTable(4), metaTable(4)
	op := engine.Op{Key: []byte("k"), Limit: bucketOf(1, 1e9, 10), Cost: 1, ID: []byte("x")}
	first := decideAt(older, at, op)
	stored := drainAll(t, older)
	for key, value := range stored {
		if key[0] == 't' {
			require.Len(t, value, 1+48, "the form that older versions read")
		}
		err := loadOne(newer, at, []byte(key), value)
		require.NoError(t, err)
	}
	other := op
	other.Cost = 9
	other.Bind()
	require.Equal(t, first, decideAt(newer, at, other))

	bound := op
	bound.ID = []byte("y")
	bound.Bind()
	second := decideAt(newer, at, bound)
	last := metaTable(8)
	for key, value := range drainAll(t, newer) {
		stored[key] = value
	}
	for key, value := range stored {
		err := loadOne(last, at, []byte(key), value)
		require.NoError(t, err)
		for _, cut := range []int{1 + 47, 1 + 49, 1 + 63} {
			if key[0] == 't' && len(value) == 1+64 {
				err = loadOne(hashTable(1), at, []byte(key), value[:cut])
				require.ErrorIs(t, err, engine.ErrStored)
			}
		}
	}
	require.Equal(t, second, decideAt(last, at, bound))
	other.ID = []byte("y")
	require.Equal(t, engine.OtherTerms, decideAt(last, at, other).Status)
	require.Equal(t, newer.StateHash(at), last.StateHash(at))
}

// drainAll returns the stored entries of a table.
func drainAll(t *testing.T, table *engine.Table) map[string][]byte {
	stored := map[string][]byte{}
	require.NoError(t, table.Drain(100, func(changes []engine.Change) error {
		for _, c := range changes {
			stored[string(c.Key)] = slices.Clone(c.Value)
		}
		return nil
	}))
	return stored
}
