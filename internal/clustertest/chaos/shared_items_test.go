package chaos

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-project/weir/engine/hashslot"
)

// sharedKind is a kind of items that concern all groups.
type sharedKind struct {
	name  string
	think time.Duration // the longest pause between two changes
	// change sends a change of an item. It returns the right answers to ask if no other client changes the item, or nil
	// if more may come of the change.
	change func(*sharer, item) []string
	// ask returns the questions about an item to the group with a hash tag.
	ask func(i item, tag string) [][]string
}

var (
	blocks   = &sharedKind{"block", thinkTime, changeBlock, askBlock}
	members  = &sharedKind{"member", thinkTime, changeBlock, askBlock}
	policies = &sharedKind{"policy", thinkTime, changePolicy, askPolicy}
	keys     = &sharedKind{"key", thinkTime, changeKeys, askOwnKey}
	flushes  = &sharedKind{"flush", 200 * time.Millisecond, flush, askBlock}
)

var kinds = []*sharedKind{blocks, members, policies, keys, flushes}

// item is one that a client changes alone, or all clients of its kind.
type item struct {
	kind          *sharedKind
	owner, number int
}

func (i item) String() string { return fmt.Sprintf("%s:%d:%d", i.kind.name, i.owner, i.number) }

// in returns the item's key of the group with a hash tag.
func (i item) in(tag string) string { return "{" + tag + "}" + i.String() }

// tags returns a hash tag of each group.
func tags() (all []string) {
	for g := range sharedGroups {
		all = append(all, hashslot.Tag(hashslot.OfGroup(g, sharedGroups).First))
	}
	return all
}

// address is the member of the blacklist, or an address of the network that is the member.
func (i item) address() string { return fmt.Sprintf("10.%d.%d.9", i.owner, i.number) }

// The answers about an item, as answerOf returns them.
const (
	untouched = "1 9/9"
	denied    = "0 0/9"
	noPolicy  = "none"
)

func askKey(key string) [][]string {
	return [][]string{{"RL.FIXED", key, "FOREVER", "9", "COST", "0"}, {"RL.INSPECT", key}}
}

func askOwnKey(i item, tag string) [][]string { return askKey(i.in(tag))[:1] }

func askBlock(i item, tag string) [][]string {
	if i.kind.name == "member" {
		return askKey("{" + tag + "}|ip:" + i.address())
	}
	return askKey("{" + tag + "}|" + i.String())
}

func askPolicy(i item, tag string) [][]string {
	return [][]string{{"RL.CHECK", i.String(), "vip:{" + tag + "}", "COST", "0"},
		{"RL.CHECK", i.String(), "{" + tag + "}", "COST", "0"}}
}

// answerOf returns a decision without its times, or whether RL.INSPECT shows a block.
func answerOf(a Answer) string {
	list, _ := a.Reply.([]any)
	text, failed := a.Reply.(ErrorReply)
	switch ints := a.ints(); {
	case failed && strings.HasPrefix(string(text), "ERR there is no policy"):
		return noPolicy
	case !failed && len(list) == 0:
		return "blocked 0"
	case slices.Contains(list, any("blocked")):
		return fmt.Sprint("blocked ", list[slices.Index(list, any("blocked"))+1])
	case len(ints) >= 5:
		return fmt.Sprintf("%d %d/%d", ints[0], ints[1], ints[4])
	}
	return fmt.Sprint(a.Reply)
}

// send sends a change until it is answered. It reports whether nothing more can come of it: it was sent once, or with
// an ID that no FLUSHALL forgets.
func (c *sharer) send(args ...string) (reply any, certain bool) {
	a := c.Persist(args...)
	if a.Outcome == Refused {
		c.s.violations.Add(strings.Join(args, " "), a.Reply.(ErrorReply))
	}
	name := args[0]
	if name == "RL.POLICY" {
		name += " " + args[1]
	}
	if a.Outcome == Answered {
		c.s.mu.Lock()
		c.s.commands[name]++
		c.s.mu.Unlock()
	}
	return a.Reply, a.Outcome == Answered && (a.Tries == 1 || slices.Contains(args, "ID") && !c.s.flushing)
}

// changeBlock sets or lifts a block, or adds or removes a member of the blacklist, which is an address or a network.
func changeBlock(c *sharer, i item) []string {
	args, want := []string{"RL.UNBLOCK", i.String(), "ID", c.freshID()}, []string{untouched, "blocked 0"}
	set := c.rng.IntN(3) > 0
	if set {
		args = []string{"RL.BLOCK", i.String(), "1h", "EVERYWHERE", "REASON", c.freshID(), "ID", c.freshID()}
		want = []string{denied, "blocked 1"}
	}
	if i.kind.name == "member" {
		args = []string{map[bool]string{true: "SADD", false: "SREM"}[set], "blacklist", i.address()}
		if i.number%2 == 0 {
			args[2] = strings.TrimSuffix(args[2], "9") + "0/24"
		}
	}
	if _, certain := c.send(args...); !certain {
		return nil
	}
	return want
}

// changePolicy sets or deletes a policy, or its override for vip:*.
func changePolicy(c *sharer, i item) []string {
	most, next, args := 1+c.rng.Int64N(1000), c.limits, []string{"RL.POLICY", "DEL", i.String()}
	switch limit := []string{"LIMIT", "FIXED", "FOREVER", strconv.FormatInt(most, 10)}; c.rng.IntN(6) {
	case 0:
		next = [2]int64{}
	case 1, 2:
		args = append([]string{"RL.POLICY", "OVERRIDE", i.String(), "vip:*"}, limit...)
		if next[1] > 0 { // else there is no policy
			next[0] = most
		}
	default:
		args, next[1] = append([]string{"RL.POLICY", "SET", i.String()}, limit...), most
	}
	_, certain := c.send(args...)
	if i == c.own && certain {
		c.limits = next
	} else if i == c.own {
		c.limits = [2]int64{} // of the next policy
	}
	if !certain {
		return nil
	}
	of := func(n int64) string { return fmt.Sprintf("1 %d/%d", n, n) }
	switch {
	case next[1] == 0:
		return []string{noPolicy, noPolicy}
	case next[0] == 0:
		return []string{of(next[1]), of(next[1])}
	}
	return []string{of(next[0]), of(next[1])}
}

// changeKeys takes a unit of a key in every group, and resets the keys.
func changeKeys(c *sharer, i item) []string {
	flushes, taken, args := c.s.ended.Load(), true, []string{[]string{"DEL", "RL.RESET"}[c.rng.IntN(2)]}
	for _, tag := range tags() {
		_, certain := c.send("RL.FIXED", i.in(tag), "FOREVER", "9", "ID", c.freshID())
		args, taken = append(args, i.in(tag)), taken && certain
	}
	if args[0] == "RL.RESET" {
		args = append(args, "ID", c.freshID())
	}
	reply, certain := c.send(args...)
	if !certain || !taken {
		return nil
	}
	if i == c.own && reply != int64(sharedGroups) && c.s.unflushed(flushes) {
		c.s.violations.Add(strings.Join(args, " "), fmt.Errorf("%w: %v of %d were reset", errNotInForce, reply,
			sharedGroups))
	}
	return []string{untouched}
}

// flush blocks a key, and empties all groups.
func flush(c *sharer, i item) []string {
	_, blocked := c.send("RL.BLOCK", i.String(), "1h", "EVERYWHERE", "ID", c.freshID())
	c.s.begun.Add(1)
	_, certain := c.send("FLUSHALL")
	if certain {
		c.s.ended.Add(1)
	}
	if !certain || !blocked {
		return nil
	}
	return []string{untouched, "blocked 0"}
}
