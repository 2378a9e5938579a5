package engine_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/engine/network"
	"github.com/weir-project/weir/internal/clientaddr"
	"github.com/weir-project/weir/internal/race"
)

// naiveBlocks are the ends of blocks everywhere by their keys. They judge a table by one comparison for each block.
type naiveBlocks map[string]int64

// denies reports whether a block in force denies a decision on a key that comes from an address.
func (b naiveBlocks) denies(key, from string, nowNs int64) bool {
	for blocked, untilNs := range b {
		if untilNs > nowNs && (reaches(blocked, key) || blocked == from || contains(blocked, from)) {
			return true
		}
	}
	return false
}

// reaches reports whether a block everywhere of a key denies the decisions on another key.
func reaches(blocked, key string) bool {
	names := []string{blocked}
	if addr, named := strings.CutPrefix(blocked, "ip:"); named && addr != "" {
		names = append(names, addr)
	}
	for _, name := range names {
		if key == name || strings.HasSuffix(key, "|"+name) {
			return true
		}
	}
	return contains(blocked, key[strings.LastIndexByte(key, '|')+1:])
}

// contains reports whether a block is one of a network that contains the client of a text.
func contains(blocked, text string) bool {
	name, named := strings.CutPrefix(blocked, "ip:")
	network, err := netip.ParsePrefix(name)
	if !named || err != nil || network != network.Masked() || network.Addr() != clientaddr.Plain(network.Addr()) ||
		network.Addr().Is4() && (network.Bits() < 8 || network.Bits() > 31) ||
		network.Addr().Is6() && (network.Bits() < 16 || network.Bits() > 63) {
		return false
	}
	text = strings.TrimPrefix(text, "ip:")
	addr, err := netip.ParseAddr(text)
	bits := 128
	if err != nil {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return false
		}
		addr, bits = p.Addr(), p.Bits()
	}
	if plain := clientaddr.Plain(addr); plain != addr && plain.Is4() && addr.Is6() && addr.WithZone("") != plain {
		addr, bits = plain, bits-96
	}
	return bits >= network.Bits() && network.Contains(clientaddr.Plain(addr))
}

// requireBlocks checks what a table says about its blocks everywhere: their keys, their numbers, and the members in the
// order of their positions.
func (b naiveBlocks) requireBlocks(t *testing.T, table *engine.Table, at engine.Stamp, r *rand.Rand) {
	var keys, members []string
	foreign, slots := 0, hashslot.OfGroup(r.IntN(2), 2)
	for _, key := range slices.Sorted(maps.Keys(b)) {
		if b[key] <= at.NowNs {
			continue
		}
		keys = append(keys, key)
		if member, named := strings.CutPrefix(key, "ip:"); named && network.IsWritten(member) {
			members = append(members, member)
		}
		if !slots.Has(engine.SlotOf([]byte(key))) {
			foreign++
		}
	}
	blocks := table.BlocksEverywhere(at)
	require.Equal(t, keys, blocks.Keys())
	all, ofMembers := blocks.Len()
	require.EqualValues(t, len(keys), all)
	require.EqualValues(t, len(members), ofMembers)
	require.EqualValues(t, foreign, table.Len(at)-table.LenWithin(at, 0, slots))
	var walked []string
	last := uint64(0)
	for position, member := range blocks.Members(0) {
		require.GreaterOrEqual(t, position, last)
		for next, same := range blocks.Members(position) {
			require.Equal(t, position, next)
			require.Equal(t, member, same)
			break
		}
		walked, last = append(walked, member), position
	}
	require.ElementsMatch(t, members, walked)
	for range blocks.Members(last + 1) {
		require.Fail(t, "a member behind the last one")
	}
	for _, key := range []string{randomBlock(r), randomClient(r)} {
		require.Equal(t, slices.Contains(keys, key), blocks.Has([]byte(key)), key)
	}
}

// TestBlocksEverywhereAreAList compares a table with a naive list of blocks, over random addresses in all of their
// forms, networks, plain keys, ends, replacements, blocks of the same keys alone, collection, Clear and restarts.
func TestBlocksEverywhereAreAList(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const rounds = 40_000
	r := rand.New(rand.NewPCG(3, 9))
	table, blocks := engine.NewTable(engine.Options{Shards: 8, TrackChanges: true}), naiveBlocks{}
	at, denied, own := engine.Stamp{NowNs: 1e18}, 0, map[string]int64{}
	for range rounds {
		at.NowNs += r.Int64N(1e9)
		var out [1]engine.Decision
		key := randomClient(r)
		switch r.IntN(8) {
		case 0:
			op := everywhere(randomBlock(r), 1+r.Int64N(20e9))
			op.High = true
			if blocks[string(op.Key)] = at.NowNs + op.TTLNs; r.IntN(10) == 0 {
				op.TTLNs, blocks[string(op.Key)] = engine.Never, engine.Never
			}
			table.Decide(at, []engine.Op{op}, out[:])
			require.EqualValues(t, 1, out[0].Allowed)
		case 1:
			lifted := randomBlock(r)
			table.Decide(at, []engine.Op{{Code: engine.OpUnblock, Key: []byte(lifted), Cost: 1}}, out[:])
			require.Equal(t, max(own[lifted], blocks[lifted]) > at.NowNs, out[0].Allowed > 0, lifted)
			delete(blocks, lifted)
			delete(own, lifted)
		case 2:
			op := engine.Op{Code: engine.OpBlock, Key: []byte(randomBlock(r)), High: true, Cost: 1}
			op.TTLNs = 1 + r.Int64N(9e9)
			own[string(op.Key)] = at.NowNs + op.TTLNs
			if r.IntN(2) == 0 { // lifts the block of the key alone
				op.Code, own[string(op.Key)] = engine.OpUnblock, 0
			}
			op.Text = []byte(strings.Repeat("x", r.IntN(40)))
			table.Decide(at, []engine.Op{op}, out[:])
		case 3:
			switch r.IntN(40) {
			case 0:
				table.Clear()
				clear(blocks)
				clear(own)
			case 1:
				table.Collect(at, 1000)
			case 2, 3, 4:
				blocks.requireBlocks(t, table, at, r)
			case 5:
				table = reloaded(t, table, at)
			}
		default:
			op := takeOf(key, engine.Limit{Algorithm: engine.FixedWindow, WindowNs: 1, Max: 1}, 1)
			from := ""
			if r.IntN(2) == 0 {
				from = "ip:" + bare(randomClient(r))
				op.From = []byte(from)
			}
			op.Dry = true
			table.Decide(at, []engine.Op{op}, out[:])
			want := blocks.denies(key, from, at.NowNs) || own[key] > at.NowNs
			require.Equal(t, want, out[0].Allowed == 0, "%q from %q", key, from)
			if from != "" {
				require.Equal(t, blocks.denies("none", from, at.NowNs), table.FromBlock(at, op.From).By != "", from)
			}
			if want {
				denied++
			}
		}
	}
	require.Greater(t, denied, rounds/20)
	require.Less(t, denied, rounds/2)
	for key := range blocks {
		table.Decide(at, []engine.Op{{Code: engine.OpUnblock, Key: []byte(key), Cost: 1}}, make([]engine.Decision, 1))
	}
	clear(blocks)
	blocks.requireBlocks(t, table, at, r)
}

// reloaded returns a table with what another one has.
func reloaded(t *testing.T, table *engine.Table, at engine.Stamp) *engine.Table {
	loaded := engine.NewTable(engine.Options{Shards: 4, TrackChanges: true})
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		cursor = table.Renew(cursor, 100)
	}
	require.NoError(t, table.Drain(100, func(chunk []engine.Change) error {
		for _, c := range chunk {
			if len(c.Value) > 0 {
				_, err := loaded.Load(at, []engine.Change{c})
				require.NoError(t, err)
			}
		}
		return nil
	}))
	return loaded
}

// bare returns the address at the end of a key.
func bare(key string) string {
	return strings.TrimPrefix(key[strings.LastIndexByte(key, '|')+1:], "ip:")
}

// randomAddr returns one of few addresses, so that blocks meet them.
func randomAddr(r *rand.Rand) netip.Addr {
	v4 := netip.AddrFrom4([4]byte{10, byte(r.IntN(3)), byte(r.IntN(2)), byte(r.IntN(12))})
	switch r.IntN(4) {
	case 0:
		return netip.MustParseAddr(fmt.Sprintf("2001:db8:%x:%x::%x", r.IntN(3), r.IntN(4), r.IntN(3)))
	case 1:
		return netip.AddrFrom16(v4.As16())
	case 2:
		b := v4.As4()
		return netip.MustParseAddr(fmt.Sprintf("64:ff9b::%02x%02x:%02x%02x", b[0], b[1], b[2], b[3]))
	}
	return v4
}

func randomClient(r *rand.Rand) string {
	addr := randomAddr(r)
	text := addr.String()
	switch r.IntN(5) {
	case 0:
		text = string(clientaddr.Append(nil, addr))
	case 1:
		text = addr.StringExpanded()
	case 2:
		text += []string{"/64", "/32", "/128", "x", "/99"}[r.IntN(5)]
	}
	return []string{"", "ip:", "a|", "a|b|ip:", "user:", "|", "ip:|"}[r.IntN(7)] + text
}

func randomBlock(r *rand.Rand) string {
	addr := clientaddr.Plain(randomAddr(r))
	text := string(clientaddr.Append(nil, addr))
	switch r.IntN(4) {
	case 0:
		p, _ := addr.Prefix([]int{0, 7, 8, 15, 16, 23, 24, 31, 29, 32}[r.IntN(10)])
		text = p.String()
	case 1:
		if addr.Is6() {
			p, _ := addr.Prefix([]int{0, 15, 16, 32, 47, 48, 62, 63, 64, 96}[r.IntN(10)])
			text = p.String()
		}
	}
	return []string{"", "ip:", "ip:", "ip:", "ip:", "a|", "user:"}[r.IntN(7)] + text
}

// TestNetworksBeginWithTheirRules checks that a block of a network denies its addresses only by the rules that older
// versions do not have, and from these rules on also if it is older.
func TestNetworksBeginWithTheirRules(t *testing.T) {
	table, at := engine.NewTable(engine.Options{}), engine.Stamp{NowNs: 1e18}
	table.SetRules(engine.RulesNetworks - 1)
	allowed := func(key, from string) int64 {
		op := takeOf(key, tenAtOnce, 1)
		op.From = []byte(from)
		var out [1]engine.Decision
		table.Decide(at, []engine.Op{op}, out[:])
		return out[0].Allowed
	}
	table.Decide(at, []engine.Op{everywhere("ip:10.0.0.0/8", 60e9)}, make([]engine.Decision, 1))
	require.Zero(t, allowed("10.0.0.0/8", ""), "the key itself")
	require.EqualValues(t, 1, allowed("10.1.2.3", ""))
	require.EqualValues(t, 1, allowed("k", "ip:10.1.2.3"))
	require.Empty(t, table.FromBlock(at, []byte("ip:10.1.2.3")))
	table.SetRules(engine.RulesNetworks)
	require.Zero(t, allowed("10.1.2.3", ""))
	require.Zero(t, allowed("k", "ip:10.1.2.3"))
	require.Equal(t, engine.FromBlock{By: "ip:10.0.0.0/8", LeftMs: 60e3, Reason: "abuse"},
		table.FromBlock(at, []byte("ip:10.1.2.3")))
}
