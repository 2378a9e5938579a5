package commands

import (
	"slices"

	"github.com/weir-project/weir/server/acl"
)

// The categories of weir's own, by which users are given what a role needs:
//
//	@decide      ask a limiter: decisions, RL.CHECK, dialects and scripts, and giving back
//	@read        look at limiters and policies
//	@policy      look at policies and change them
//	@admin       change what others are decided by: limiters, blocks, the server, the cluster
//	@dangerous   end, hold up or see everything: part of @admin, and of @read what lists keys
//	@connection  what clients ask by themselves
//
// A command of @admin is in no other category that is for every client.

// settlesOwn are the settling commands that only give back what their sender took. Whoever
// counts attempts has to say which succeeded.
var settlesOwn = []string{"RL.RELEASE", "RL.RENEW", "RL.REFUND", "RL.FORGIVE", "RL.COMMIT", "RL.CANCEL"}

// findCategories lists the ACL categories, which follow from flags and group.
func (c *command) findCategories() []string {
	var cats []string
	add := func(when bool, category string) {
		if when {
			cats = append(cats, category)
		}
	}
	settles := c.group == groupSettle && !slices.Contains(settlesOwn, c.name)
	flushes := c.name == "FLUSHALL" || c.name == "FLUSHDB"
	admin := c.inherits("admin")
	add(c.isDecision(), "@decide")
	add(c.inherits("write"), "@write")
	add(c.inherits("readonly"), "@read")
	add(c.top().name == "RL.POLICY", "@policy")
	add(admin || settles || flushes, "@admin")
	add(admin || flushes || c.listsKeys(), "@dangerous")
	add(c.inherits("pubsub"), "@pubsub")
	add(c.has("fast"), "@fast")
	add(!c.has("fast"), "@slow")
	switch c.group {
	case groupDecide, groupPolicy, groupSettle, groupDialect:
		add(true, "@ratelimit")
	case groupConn, groupServer, groupCluster:
		add(!admin, "@connection")
	case groupMulti:
		add(true, "@transaction")
	}
	return cats
}

// checks are the decisions among the commands about policies.
var checks = []string{"RL.CHECK", "RL.RESERVE"}

// isDecision says whether applications need the command to be limited.
func (c *command) isDecision() bool {
	return c.group == groupDecide || c.group == groupDialect || slices.Contains(checks, c.name) || slices.Contains(settlesOwn, c.name)
}

// listsKeys says whether the command shows keys that its sender has not named.
func (c *command) listsKeys() bool {
	return slices.Contains([]string{"KEYS", "SCAN", "RANDOMKEY", "RL.TOP"}, c.name) && c.parent == nil
}

// inherits says whether the command or its container has a flag; a subcommand with flags
// that say whether it writes goes by its own.
func (c *command) inherits(flag string) bool {
	if c.parent == nil || c.has("write") || c.has("readonly") {
		return c.has(flag)
	}
	return c.has(flag) || c.parent.has(flag)
}

// top is the command itself, or the container of a subcommand.
func (c *command) top() *command {
	if c.parent != nil {
		return c.parent
	}
	return c
}

// each visits every command and subcommand.
func (t *commandTable) each(visit func(*command)) {
	for _, cmd := range t.all {
		visit(cmd)
		for _, sub := range cmd.subs {
			visit(sub)
		}
	}
}

// Len is the number of commands and subcommands.
func (t *commandTable) Len() int { return len(t.bySlot) }

// Named returns the slots of the commands that a rule names; see Commands.
func (t *commandTable) Named(rule string) (slots []int) {
	if cmd := t.named([]byte(rule)); cmd != nil {
		slots = append(slots, cmd.Slot)
		for _, sub := range cmd.subs {
			slots = append(slots, sub.Slot)
		}
		return slots
	}
	t.each(func(cmd *command) {
		if rule == "@all" || slices.Contains(cmd.categories, rule) {
			slots = append(slots, cmd.Slot)
		}
	})
	return slots
}

// allowedTo says whether a user may send the command. Logging in is everybody's.
func (c *command) allowedTo(u *acl.User) bool { return u.MayCall(c.Slot) || c.noAuth }
