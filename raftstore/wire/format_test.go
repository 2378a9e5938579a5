package wire_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/wire"
)

// decode returns the calls of a body.
func decode(body []byte) (calls int, err error) {
	var d wire.Decoder
	d.Reset(body)
	for {
		_, more, err := d.Next()
		if err != nil || !more {
			return calls, err
		}
		calls++
	}
}

// TestTheBytesOfOperations checks the bytes of operations, which are a contract between versions.
func TestTheBytesOfOperations(t *testing.T) {
	bucket, check := validOp(engine.OpTake), validOp(engine.OpCheck)
	bucket.Limit = validLimits["bucket"]
	check.High = true
	from := validOp(engine.OpCheck)
	from.From = []byte("ip:192.0.2.7")
	bound := validOp(engine.OpReset)
	bound.ID, bound.Asks = []byte("id"), engine.Fingerprint{1, 15: 2}
	block := validOp(engine.OpBlock)
	block.Keep = true
	conditional := validOp(engine.OpPolicy)
	conditional.Policy.If, conditional.Policy.Version = true, 300
	for name, c := range map[string]struct {
		ops  []engine.Op
		want string
	}{
		"a reset":            {[]engine.Op{validOp(engine.OpReset)}, "02" + "0400016b"},
		"a limit, and again": {[]engine.Op{bucket, bucket}, "04" + "0000016b" + "01000202020000" + "0004016b"},
		"high priority":      {[]engine.Op{check}, "02" + "09c0016b" + "0170" + "04"},
		"an address": {[]engine.Op{from}, "02" + "09c0016b" + "0170" + "40" + "0c" +
			hex.EncodeToString(from.From)},
		"an ID of a request": {[]engine.Op{bound}, "02" + "04a0016b" + "026964" + "80" + fingerprint},
		"a changed policy":   {[]engine.Op{validOp(engine.OpPolicy)}, "02" + "0a80016b" + "10" + "010000"},
		"a longer block":     {[]engine.Op{block}, "02" + "0502016b"},
		"if it is as it was": {[]engine.Op{conditional}, "02" + "0a80016b" + "10" + "0104ac0200"},
	} {
		var enc wire.Encoder
		body := enc.Call(nil, c.ops, false)
		require.Equal(t, c.want, hex.EncodeToString(body), name)
		calls, err := decode(body)
		require.NoError(t, err, name)
		require.Equal(t, 1, calls, name)
	}
}

const fingerprint = "01000000" + "00000000" + "00000000" + "00000002"

// TestUnknownBitsAreRefused checks that bits which no version sets are refused. A node that ignored one would decide
// differently from a node that knows it.
func TestUnknownBitsAreRefused(t *testing.T) {
	const incr, change, terms = "0780016b", "0a80016b", "11" + "0100000000000204000000020200000000"
	for name, c := range map[string]struct {
		known   string
		unknown []string
	}{
		"extras and terms":    {change + "100001" + terms, []string{change + "900001" + terms}},
		"an increment":        {incr + "02030000000000", []string{incr + "02070000000000", incr + "02830000000000"}},
		"a change":            {change + "10010100", []string{change + "10010900", change + "10018100"}},
		"a change with terms": {change + "100001" + terms, []string{change + "100009" + terms}},
	} {
		_, err := decode(oneOp(t, c.known))
		require.NoError(t, err, name)
		for _, body := range c.unknown {
			_, err := decode(oneOp(t, body))
			require.ErrorIs(t, err, wire.ErrMalformed, "%s: %s", name, body)
		}
	}
}

// oneOp returns a body with one operation of the given bytes.
func oneOp(t *testing.T, op string) []byte {
	body, err := hex.DecodeString("02" + op)
	require.NoError(t, err)
	return body
}

// TestABodyIsRefused checks that a body is refused if it is cut short, or if the engine cannot compute it.
func TestABodyIsRefused(t *testing.T) {
	var enc wire.Encoder
	take, check := validOp(engine.OpTake), validOp(engine.OpCheck)
	take.Limit, take.Cost, take.WaitNs, take.TTLNs, take.ID, take.Text = validLimits["strike"], 7, 8, 9,
		[]byte("id"), []byte("holder")
	check.Also = pairs(2)
	body := enc.Call(nil, []engine.Op{validOp(engine.OpReset), check, validOp(engine.OpPolicy), take}, false)
	_, err := decode(body)
	require.NoError(t, err)
	for cut := 1; cut < len(body); cut++ {
		_, err := decode(body[:cut])
		require.ErrorIs(t, err, wire.ErrMalformed, "cut to %d of %d bytes", cut, len(body))
	}
	for name, spoiled := range map[string]string{
		"no key":                "02" + "040000",
		"a cost below zero":     "02" + "0408016b01",
		"a length of steps < 0": "02" + "0000016b" + "01000202020001",
		"more operations":       "06" + "0400016b",
		"no address":            "02" + "09c0016b" + "0170" + "4000",
		"an address of a reset": "02" + "0480016b" + "40" + "0161",
		"no fingerprint":        "02" + "04a0016b" + "026964" + "80" + "00000000000000000000000000000000",
		"no pairs":              "02" + "09c0016b" + "0170" + "0800",
		"too many pairs":        "02" + "09c0016b" + "0170" + "08ffffffffff7f",
		"terms that are none":   "02" + "0a80016b" + "10" + "000001ff",
	} {
		body, err := hex.DecodeString(spoiled)
		require.NoError(t, err)
		_, err = decode(body)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
	}
}

func TestHeadersAtTheBounds(t *testing.T) {
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"the first, and the first kind": {[]byte{1, byte(wire.Decide)}, nil},
		"the oldest":                    {[]byte{wire.Oldest, byte(wire.Tick)}, nil},
		"the newest, and the last kind": {[]byte{wire.Version, byte(wire.Bootstrap)}, nil},
		"none":                          {[]byte{0, 0}, wire.ErrMalformed},
		"a later one":                   {[]byte{wire.Version + 1, 0}, wire.ErrVersion},
		"a kind that is none":           {[]byte{wire.Oldest, byte(wire.Bootstrap) + 1}, wire.ErrMalformed},
	} {
		whole := append(c.b, make([]byte, wire.HeaderLen-2)...)
		h, body, err := wire.Split(whole, wire.Version)
		require.ErrorIs(t, err, c.want, name)
		require.Empty(t, body)
		if err == nil {
			require.Equal(t, max(c.b[0], wire.Oldest), h.Format, name)
		}
		_, _, err = wire.Split(whole[:wire.HeaderLen-1], wire.Version)
		require.Error(t, err, name)
	}
	_, _, err := wire.Split(append([]byte{wire.Version, 0}, make([]byte, wire.HeaderLen)...), wire.Version-1)
	require.ErrorIs(t, err, wire.ErrVersion, "a cluster that writes an older format must refuse it")
}

// attempts is the strike limit with a mode.
func attempts(mode engine.StrikeMode) engine.Limit {
	l := validLimits["strike"]
	l.Strikes = mode
	return l
}

// TestFormatOf checks that an entry has a newer format only if an older version cannot read it.
func TestFormatOf(t *testing.T) {
	const added, growing = 11, 14
	told := []engine.PolicyLimit{{Limit: validLimits["fixed"], Notify: "\x64"}}
	strike := []engine.PolicyLimit{{Limit: validLimits["log"]}, {Limit: validLimits["strike"]}}
	other := []engine.PolicyLimit{{Limit: validLimits["log"]}}
	change := func(terms *engine.Policy) engine.Op {
		return engine.Op{Code: engine.OpPolicy, Policy: &engine.PolicyChange{Terms: terms}}
	}
	script := func(id engine.ScriptID) engine.Op {
		return engine.Op{Code: engine.OpScript, Script: &engine.Script{ID: id}}
	}
	overridden := func(limits []engine.PolicyLimit) *engine.Policy {
		return &engine.Policy{Limits: other, Overrides: []engine.Override{{Limits: other}, {Limits: limits}}}
	}
	for name, c := range map[string]struct {
		op   engine.Op
		want byte
	}{
		"a strike of its own": {engine.Op{Limit: validLimits["strike"]}, wire.Oldest},
		"an attempt":          {engine.Op{Limit: attempts(engine.Attempts)}, added},
		"an extended penalty": {engine.Op{Limit: attempts(engine.Extend)}, added},
		"a delay":             {engine.Op{Limit: validLimits["delay"]}, added},
		"a policy with attempts": {change(
			&engine.Policy{Limits: []engine.PolicyLimit{{Limit: attempts(engine.Attempts)}}}), added},
		"an override with a delay": {change(overridden([]engine.PolicyLimit{{Limit: validLimits["delay"]}})), added},
		"forgiveness":              {validOp(engine.OpForgive), added},
		"charge":                   {validOp(engine.OpCharge), growing},
		"a check":                  {validOp(engine.OpCheck), wire.Oldest},
		"a check of an address":    {engine.Op{Code: engine.OpCheck, From: []byte("ip:192.0.2.7")}, added},
		"a policy removed":         {change(nil), wire.Oldest},
		"a policy":                 {change(overridden(other)), wire.Oldest},
		"a policy with strikes":    {change(&engine.Policy{Limits: strike}), wire.Oldest},
		"an override with strikes": {change(overridden(strike)), wire.Oldest},
		"a policy of an owner": {engine.Op{Code: engine.OpPolicy,
			Policy: &engine.PolicyChange{Own: true, Terms: overridden(strike)}}, wire.Oldest},
		"a conditional removal": {engine.Op{Code: engine.OpPolicy,
			Policy: &engine.PolicyChange{If: true}}, wire.Oldest},
		"a block everywhere": {engine.Op{Code: engine.OpBlockEverywhere}, wire.Oldest},
		"a block of an address": {engine.Op{Code: engine.OpBlockEverywhere,
			Key: []byte("ip:192.0.2.7")}, wire.Oldest},
		"a block of a network": {engine.Op{Code: engine.OpBlockEverywhere, Key: []byte("ip:192.0.2.0/24")}, added},
		"a wider network": {engine.Op{Code: engine.OpBlockEverywhere,
			Key: []byte("ip:0.0.0.0/0")}, wire.Oldest},
		"a network lifted":        {engine.Op{Code: engine.OpUnblock, Key: []byte("ip:192.0.2.0/24")}, wire.Oldest},
		"an older script":         {script(engine.RedisGCRA - 1), wire.Oldest},
		"redis-gcra":              {script(engine.RedisGCRA), wire.Oldest},
		"the first of strings":    {script(engine.TextSet), added},
		"the last of strings":     {script(engine.TextSwapLive), added},
		"a bucket in a hash":      {script(engine.GatewayTake), added},
		"a layout":                {change(&engine.Policy{Limits: other, Layout: "rl:{key}"}), added},
		"a rate that is reported": {change(&engine.Policy{Limits: other, ReportNs: 1}), added},
		"a threshold":             {change(&engine.Policy{Limits: told}), growing},
		"an override's threshold": {change(overridden(told)), growing},
		"events of holds":         {change(&engine.Policy{Limits: other, Record: true}), growing},
		"the end of a hold":       {validOp(engine.OpEnd), growing},
		"a key of a database":     {engine.Op{Key: engine.AppendStored(nil, 1, []byte("k"))}, growing},
		"a limiter of a database": {engine.Op{Code: engine.OpReset,
			Key: engine.AppendStored(nil, 15, []byte("policy|p|0|k"))}, growing},
		"a flush of a database":  {engine.Flush(0, 7), growing},
		"all limits of a key":    {validOp(engine.OpResetPolicy), added},
		"a sliding log":          {script(engine.SlidingSet), added},
		"times of hits":          {script(engine.MovingTake), growing},
		"the first of Upstash":   {script(engine.UpstashSlide), growing},
		"the last of Upstash":    {script(engine.UpstashLook), growing},
		"an ID":                  {engine.Op{Code: engine.OpReset, ID: []byte("id")}, wire.Oldest},
		"an ID of a request":     {engine.Op{ID: []byte("id"), Asks: engine.Fingerprint{1}}, added},
		"shared items":           {validOp(engine.OpFollow), added},
		"a block beside another": {engine.Op{Code: engine.OpBlock, High: true, Asks: engine.Fingerprint{1}}, added},
	} {
		require.Equal(t, c.want, wire.FormatOf(&c.op), name)
	}
}

// TestOlderOperations checks which operations have a form that older members read.
func TestOlderOperations(t *testing.T) {
	for _, code := range []engine.OpCode{engine.OpBlock, engine.OpUnblock, engine.OpBlockEverywhere} {
		op := engine.Op{Code: code, High: true, Asks: engine.Fingerprint{1}}
		require.True(t, wire.Older(&op))
		require.Equal(t, engine.Op{Code: code, Asks: engine.Fingerprint{1}}, op)
		require.False(t, wire.Older(&op))
	}
	check := engine.Op{Code: engine.OpCheck, High: true}
	require.False(t, wire.Older(&check))
	require.True(t, check.High)
}

// TestEstimate checks that the estimate counts everything that makes an operation long.
func TestEstimate(t *testing.T) {
	long := validOp(engine.OpPolicy)
	long.Policy = &engine.PolicyChange{Terms: &engine.Policy{}}
	for range engine.MaxPolicyLimits {
		long.Policy.Terms.Limits = append(long.Policy.Terms.Limits, engine.PolicyLimit{Limit: validLimits["strike"]})
	}
	script, check, take := validOp(engine.OpScript), validOp(engine.OpCheck), validOp(engine.OpTake)
	for i := range script.Script.Args {
		script.Script.Args[i] = -math.Pi * 1e-200
	}
	swap := script
	swap.Script = &engine.Script{ID: engine.TextSwap, Args: script.Script.Args,
		Values: [2][]byte{text(3000), text(500)}}
	check.Also = pairs(engine.MaxPairs - 1)
	take.Limit, take.ID, take.Text, take.From = validLimits["strike"], text(engine.MaxIDLen), text(engine.MaxHolderLen),
		text(engine.MaxFromLen)
	take.Asks = engine.Fingerprint{1}
	for name, op := range map[string]engine.Op{
		"a policy": long, "a removed policy": validOp(engine.OpPolicy), "a script": script, "a swap": swap,
		"pairs": check, "steps": take,
	} {
		var enc wire.Encoder
		n := len(enc.Call(nil, []engine.Op{op}, false))
		require.GreaterOrEqual(t, wire.Estimate(&op), n, name)
		require.Less(t, wire.Estimate(&op), n+80, name)
	}
}

// TestTheFormsAreDocumented checks that the table of forms begins with the oldest and ends with the newest.
func TestTheFormsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(page), "| form | first used by |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	lines := strings.Split(table, "\n")
	require.Contains(t, lines[0], fmt.Sprintf("| %d |", wire.Oldest))
	require.Contains(t, lines[len(lines)-1], fmt.Sprintf("| %d |", wire.Version))
}

// TestRulesOfHolds checks that the larger bound of holds is a rule from form 14 on, and that a reserve asks for that form.
func TestRulesOfHolds(t *testing.T) {
	require.Equal(t, engine.RulesManyBlocks, wire.RulesOf(13))
	require.Equal(t, engine.RulesManyHolds, wire.RulesOf(14))
	require.Equal(t, engine.RulesNewest, wire.RulesOf(wire.Version))
	require.EqualValues(t, 14, wire.Preferred(&engine.Op{Code: engine.OpReserve}))
}

// TestEveryPartHasAFormat checks that the parts of operations are those for which FormatOf was written. A member that
// does not know a part would apply the entry without it, and diverge: give a new part its format in FormatOf, and then
// name it here.
func TestEveryPartHasAFormat(t *testing.T) {
	for part, names := range map[reflect.Type]string{
		reflect.TypeFor[engine.Op](): "Code Partial Dry High Keep Database Else Key Limit Cost WaitNs TTLNs ID Asks " +
			"Text From Also Calendar Incr Policy Script",
		reflect.TypeFor[engine.Pair]():         "Policy Key",
		reflect.TypeFor[engine.Limit]():        "Algorithm Mode Strikes Rate Max WindowNs Steps Since",
		reflect.TypeFor[engine.PolicyChange](): "Do Reset Terms Own If Version",
		reflect.TypeFor[engine.Policy](): "Name Version Limits Shadow Disabled RetryNs Reserved Owner Layout " +
			"ReportNs Record Overrides",
		reflect.TypeFor[engine.PolicyLimit](): "Limit WaitNs Zone Notify",
		reflect.TypeFor[engine.Override]():    "Pattern Limits UntilNs",
	} {
		var found []string
		for f := range part.Fields() {
			if f.IsExported() && !f.Anonymous {
				found = append(found, f.Name)
			}
		}
		require.Equal(t, names, strings.Join(found, " "), part.String())
	}
	require.EqualValues(t, 24, engine.NumOps)
	change := engine.PolicyChange{Do: engine.PolicyUnoverride + 1}
	require.False(t, change.Valid([]byte("p")), "a new PolicyDo")
	require.EqualValues(t, 6, engine.Forever)
}
