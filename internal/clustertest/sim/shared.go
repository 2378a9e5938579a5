package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
)

// A run with Config.shared changes what all groups share. Clients race on the blocks and policies of sharedNames. Each
// client also has a block and a policy of its own, and asks every group about them when it was answered.

// sharedNames is the number of keys, and of policies, on which clients race.
const sharedNames = 3

// sharedTTL is longer than a run, with all steps of the wall clocks.
const sharedTTL = 1000 * time.Hour

// own is what a client knows of its own key and policy.
type own struct {
	number     int   // of the key and the policy; a new one after an unknown outcome
	everywhere bool  // the key has a block EVERYWHERE
	plain      bool  // the key has a block of its own
	most       int64 // the maximum of the policy; 0: there is none
	vip        int64 // the maximum of an override
	clears     int64 // Simulation.clears when the blocks were set
	maybe      bool  // an earlier block may be there or not, because a FLUSHALL came between
}

func (c *client) share() {
	switch n := c.rng.IntN(12); {
	case n < 3:
		c.raceBlocks()
	case n < 5:
		c.insist(call{op: c.sharedPolicy(fmt.Sprint("race", c.rng.IntN(sharedNames)))})
	case n < 8:
		c.ownBlock()
	case n < 10:
		c.ownPolicy()
	case n < 11:
		c.resetGroups()
	case c.number == 0 && c.rng.IntN(4) == 0:
		c.clear()
	}
}

func raceKey(i int) string { return fmt.Sprint("race:", i) }

// blockOp draws a change of the blocks of a key.
func (c *client) blockOp(key string) engine.Op {
	op := engine.Op{Code: engine.OpBlockEverywhere, Key: []byte(key), Cost: 1, TTLNs: engine.Never,
		Text: fmt.Append(nil, c.rng.IntN(9))}
	switch c.rng.IntN(5) {
	case 0:
		op.TTLNs = int64(sharedTTL)
	case 1:
		op.Code = engine.OpBlock
	case 2, 3:
		return engine.Op{Code: engine.OpUnblock, Key: []byte(key), Cost: 1}
	}
	return op
}

// raceBlocks changes blocks that other clients change too: one with an ID, or several in a pipeline, as SADD does.
func (c *client) raceBlocks() {
	op := c.blockOp(raceKey(c.rng.IntN(sharedNames)))
	if c.rng.IntN(3) > 0 {
		c.insist(call{op: op})
		return
	}
	c.send([]call{{op: op}, {op: c.blockOp(raceKey(0))}, {op: c.blockOp(raceKey(1))}}, false)
}

// sharedPolicy draws a change of a policy.
func (c *client) sharedPolicy(name string) engine.Op {
	op := engine.Op{Code: engine.OpPolicy, Key: []byte(name), Cost: 1}
	limit := engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 1 + c.rng.Int64N(1000)}
	vip := engine.Override{Pattern: "vip:*", Limits: []engine.PolicyLimit{{Limit: limit}}, UntilNs: engine.Never}
	terms := &engine.Policy{Overrides: []engine.Override{vip}}
	switch c.rng.IntN(6) {
	case 0:
		op.Policy = &engine.PolicyChange{Do: engine.PolicyDelete}
	case 1:
		op.Policy = &engine.PolicyChange{Do: engine.PolicyOverride, Terms: terms}
		op.TTLNs = []int64{0, int64(sharedTTL)}[c.rng.IntN(2)]
	case 2:
		op.Policy = &engine.PolicyChange{Do: engine.PolicyUnoverride, Terms: terms}
	default:
		terms = &engine.Policy{Limits: vip.Limits}
		op.Policy = &engine.PolicyChange{Reset: c.rng.IntN(3) == 0, Terms: terms}
	}
	return op
}

// ownBlock changes a block that no other client changes.
func (c *client) ownBlock() {
	key, clears := fmt.Sprintf("own:%d:%d", c.number, c.own.number), c.sim.clears.Load()
	op := c.blockOp(key)
	if c.insist(call{op: op}) != acked {
		c.own = own{number: c.own.number + 1}
		return
	}
	switch op.Code {
	case engine.OpBlock:
		c.own.plain = true
	case engine.OpBlockEverywhere:
		c.own.everywhere = true
	default:
		c.own.plain, c.own.everywhere, c.own.maybe = false, false, false
	}
	if c.own.clears != clears {
		c.own.plain, c.own.everywhere = op.Code == engine.OpBlock, op.Code == engine.OpBlockEverywhere
		c.own.clears, c.own.maybe = clears, op.Code != engine.OpUnblock
	}
	c.askBlock(key)
}

// askBlock asks every group whether the client's key is blocked there, and checks it if no FLUSHALL came between.
func (c *client) askBlock(key string) {
	for i, name := range append(c.inGroups("|"+key), key) {
		d, ok := c.ask(engine.Op{Key: []byte(name), Limit: limitOf("n")})
		if !ok {
			continue
		}
		want := c.own.everywhere || c.own.plain && name == key
		if denied := d.Allowed == 0; denied && !want && !c.own.maybe || want && !denied &&
			c.sim.notCleared(c.own.clears) {
			c.sim.violation("%s: blocked %v, blocked EVERYWHERE %v, and request %d is denied %v", key, c.own.plain,
				c.own.everywhere, i, denied)
		}
		c.sim.report.answeredEverywhere()
	}
}

// ownPolicy changes a policy that no other client changes.
func (c *client) ownPolicy() {
	name := fmt.Sprintf("own-%d-%d", c.number, c.own.number)
	op := c.sharedPolicy(name)
	if c.send([]call{{op: op}}, false) != acked {
		c.own = own{number: c.own.number + 1, clears: -1}
		return
	}
	switch {
	case op.Policy.Do == engine.PolicySet:
		c.own.most = op.Policy.Terms.Limits[0].Limit.Max
	case op.Policy.Do == engine.PolicyDelete:
		c.own.most, c.own.vip = 0, 0
	case c.own.most == 0: // there was no policy
	case op.Policy.Do == engine.PolicyOverride:
		c.own.vip = op.Policy.Terms.Overrides[0].Limits[0].Limit.Max
	default:
		c.own.vip = 0
	}
	for _, key := range append(c.inGroups("user"), c.inGroups("")...) {
		want := c.own.most
		if c.own.vip > 0 && key[:1] != "{" {
			want = c.own.vip
		}
		d, ok := c.ask(engine.Op{Code: engine.OpCheck, Text: []byte(name), Key: []byte(key)})
		if ok && (d.Status == engine.UnknownPolicy) != (want == 0) || ok && d.Status == engine.OK && d.Limit != want {
			c.sim.violation("%s: %s has the limit %d, which was set to %d (status %d)", name, key, d.Limit, want,
				d.Status)
		}
		c.sim.report.answeredEverywhere()
	}
}

// resetGroups resets a key of every group in one call, and checks what each answer says.
func (c *client) resetGroups() {
	var ops []engine.Op
	for _, key := range c.inGroups(fmt.Sprint("n", c.number)) {
		if d, ok := c.ask(engine.Op{Key: []byte(key), Limit: limitOf("n"), Cost: 1}); ok && d.Allowed == 1 {
			ops = append(ops, engine.Op{Code: engine.OpReset, Key: []byte(key), Cost: 1})
		}
	}
	clears, p := c.sim.clears.Load(), c.sim.anyProcess(c.rng)
	if p == nil {
		return
	}
	out, err := p.ask(slices.Clone(ops), false)
	if err != nil {
		return
	}
	for i, d := range out {
		o := c.sim.outcomeOf(ops[i], d.Status)
		look, ok := c.ask(engine.Op{Key: ops[i].Key, Limit: limitOf("n")})
		used := look.Limit - look.Remaining
		if ok && (o == acked && used > 0 || o == refused && used == 0 && c.sim.notCleared(clears)) {
			c.sim.violation("RL.RESET of %s: outcome %d, and %d units are used", ops[i].Key, o, used)
		}
		c.sim.report.answeredEverywhere()
	}
}

// clear empties all groups. After an unknown outcome any block may vanish.
func (c *client) clear() {
	c.sim.clears.Add(1)
	p, o := c.sim.anyProcess(c.rng), refused
	if p != nil {
		o = outcomeOf(p.do(p.node.Clear))
	}
	if o == refused {
		c.sim.clears.Add(1)
	}
	if o != acked {
		return
	}
	c.own = own{number: c.own.number, most: c.own.most, vip: c.own.vip, clears: c.sim.clears.Add(1)}
	c.askBlock(fmt.Sprintf("own:%d:%d", c.number, c.own.number))
}

// notCleared reports whether no FLUSHALL was under way since its number was read, and none may still come.
func (s *Simulation) notCleared(clears int64) bool { return clears%2 == 0 && s.clears.Load() == clears }

// inGroups returns a key of each group.
func (c *client) inGroups(end string) (keys []string) {
	for i := range c.sim.groups() {
		tag := "{" + hashslot.Tag(hashslot.OfGroup(i, c.sim.groups()).First) + "}"
		if keys = append(keys, tag+end); end == "" {
			keys[i] = "vip:" + tag
		}
	}
	return keys
}

// ask sends an operation once, and returns its answer if there is one.
func (c *client) ask(op engine.Op) (d engine.Decision, ok bool) {
	p := c.sim.anyProcess(c.rng)
	if p == nil {
		return d, false
	}
	out, err := p.ask([]engine.Op{op}, false)
	if err != nil || c.sim.outcomeOf(op, out[0].Status) != acked {
		return d, false
	}
	return out[0], true
}

// describeShared describes shared items, without what each group stamps by its own clock.
func describeShared(s *engine.SharedItems) string {
	var items string
	for _, policy := range s.Policies.All() {
		items += fmt.Sprintf("%s %+v", policy.Name, s.Policy(policy.Name))
		for _, l := range policy.Limits {
			items += fmt.Sprint(" ", l.Limit.Max)
		}
		for _, o := range policy.Overrides {
			items += fmt.Sprint(" ", o.Pattern, o.UntilNs == engine.Never, o.Limits[0].Limit.Max)
		}
		items += "\n"
	}
	var blocks []string
	for b := range s.Blocks() {
		blocks = append(blocks, fmt.Sprintln(b.Key, b.Version, b.Reason, b.UntilNs == engine.Never))
	}
	slices.Sort(blocks)
	return items + strings.Join(blocks, "")
}

// compareShared checks that groups with the same version have the same shared items, on every node and at any time.
func (s *Simulation) compareShared(p *process) {
	for i, g := range p.group {
		shared := g.Shared()
		if shared == nil || shared.Version == 0 {
			continue
		}
		version, items := shared.Version, describeShared(shared)
		if was, ok := s.sharedSeen[version]; !ok {
			s.sharedSeen[version] = items
		} else if was != items {
			s.violation("group %d of %s differs at version %d:\n%sand not\n%s", i, p.host.id, version, items, was)
		}
		s.report.SharedCompared++
	}
}

// agreeOnShared waits until all groups have the version of the first one, and checks that INSPECT, KEYS, DBSIZE and
// decisions agree on every node.
func (s *Simulation) agreeOnShared() {
	if !s.within(maxRecovery, s.sameVersions) {
		s.violation("groups stay behind")
	}
	s.agree()
	c := &client{sim: s, number: clients, rng: s.rng}
	var lens []int64
	for _, p := range s.members() {
		state, keys := s.reading(p), map[string]bool{}
		for cursor, more := uint64(0), true; more; more = cursor != 0 {
			cursor = state.Scan(cursor, 100, func(key []byte, _ engine.Algorithm) { keys[string(key)] = true })
		}
		for _, key := range state.BlocksEverywhere().Keys() {
			keys[key] = true
		}
		if lens = append(lens, state.Len(0), int64(len(keys))); len(slices.Compact(slices.Clone(lens))) > 1 {
			s.violation("DBSIZE and the numbers of keys differ: %v", lens)
		}
		for i := range sharedNames {
			blocked := state.BlocksEverywhere().Has([]byte(raceKey(i)))
			for _, name := range c.inGroups("|" + raceKey(i)) {
				info, _ := state.Inspect([]byte(name))
				out, err := p.ask([]engine.Op{{Key: []byte(name), Limit: limitOf("n")}}, false)
				if err != nil || out[0].Status != engine.OK {
					s.violation("%s: no answer: %v", name, err)
				} else if denied := out[0].Allowed == 0; denied != blocked || info.Blocked != blocked {
					s.violation("%s on %s: blocked %v, denied %v, INSPECT says %v", name, p.host.id, blocked, denied,
						info.Blocked)
				}
			}
		}
	}
}

// sameVersions reports whether all groups of all members have the same version.
func (s *Simulation) sameVersions() bool {
	members := s.members()
	for _, p := range members {
		first := members[0].group[0].Shared()
		for i, g := range p.group {
			shared := g.Shared()
			if s.config.Replicas > 0 && p.node.Topology().Groups[i].Away {
				continue
			}
			if shared == nil || first == nil || shared.Version != first.Version {
				return false
			}
		}
	}
	return len(members) > 0
}

// reading returns the state of all groups as one node reads it.
func (s *Simulation) reading(p *process) limiter.State {
	return p.node.Reading(func(err error) { s.violation("a read at %s failed: %v", p.host.id, err) })
}
