package commands

import (
	"slices"

	"github.com/weir-project/weir/server/acl"
)

// weir has ACL categories of its own, from which a role gets its permissions:
//
//	@decide      take units, in the syntax of weir or of another library, and give them back
//	@read        read limiters and policies
//	@policy      read and change policies
//	@admin       change what other clients' decisions depend on: limiters, blocks, the server, the cluster
//	@dangerous   end, delay, flush or observe the whole server, show keys that their sender has not named, or cost
//	             work that grows with the server's keys or clients
//	@connection  commands that client libraries send on their own
//
// No command of @admin or @dangerous is in @decide or @connection, the categories for every client.

// givesBackOwn are the commands of the group groupCorrect that only give back units which their sender took. RL.FORGIVE
// belongs to them: a client that counts attempts must report the successful ones.
var givesBackOwn = []string{"RL.RELEASE", "RL.RENEW", "RL.REFUND", "RL.FORGIVE", "RL.EXTEND", "RL.COMMIT", "RL.CANCEL"}

// findCategories derives the ACL categories of a command from its flags and its group.
func (c *command) findCategories() []string {
	var cats []string
	add := func(when bool, category string) {
		if when {
			cats = append(cats, category)
		}
	}
	corrects := c.group == groupCorrect && !slices.Contains(givesBackOwn, c.name)
	flushes := c.name == "FLUSHALL" || c.name == "FLUSHDB"
	admin := c.inherits("admin")
	dangerous := admin || flushes || c.showsOthers() || c.bulky && !c.keyed
	add(c.isDecision(), "@decide")
	add(c.inherits("write"), "@write")
	add(c.inherits("readonly"), "@read")
	add(c.top().name == "RL.POLICY", "@policy")
	add(admin || corrects || flushes, "@admin")
	add(dangerous, "@dangerous")
	add(c.inherits("pubsub"), "@pubsub")
	add(c.has("fast"), "@fast")
	add(!c.has("fast"), "@slow")
	switch c.group {
	case groupDecide, groupPolicy, groupCorrect, groupDialect:
		add(true, "@ratelimit")
	case groupConn, groupServer, groupCluster:
		add(!dangerous, "@connection")
	case groupMulti:
		add(true, "@transaction")
	}
	return cats
}

// checks are the decisions among the commands about policies.
var checks = []string{"RL.CHECK", "RL.RESERVE"}

// isDecision reports whether the command belongs to @decide.
func (c *command) isDecision() bool {
	return c.group == groupDecide || c.group == groupDialect || slices.Contains(checks, c.name) ||
		slices.Contains(givesBackOwn, c.name)
}

// showsOthers reports whether the command shows keys that its sender has not named, although its work is bounded.
// findCategories finds the other commands that list keys by their work.
func (c *command) showsOthers() bool {
	return slices.Contains([]string{"randomkey", "rl.top", "subscribe", "psubscribe"}, c.Full)
}

// inherits reports whether the command or its container has a flag. A subcommand that has the flag write or readonly
// uses its own flags only.
func (c *command) inherits(flag string) bool {
	if c.parent == nil || c.has("write") || c.has("readonly") {
		return c.has(flag)
	}
	return c.has(flag) || c.parent.has(flag)
}

// top returns the command itself, or the container of a subcommand.
func (c *command) top() *command {
	if c.parent != nil {
		return c.parent
	}
	return c
}

// each calls visit for every command and subcommand.
func (t *commandTable) each(visit func(*command)) {
	for _, cmd := range t.all {
		visit(cmd)
		for _, sub := range cmd.subs {
			visit(sub)
		}
	}
}

// Len returns the number of commands and subcommands.
func (t *commandTable) Len() int { return len(t.bySlot) }

// Named returns the slots of the commands that a rule names. A slot is the number of a command in acl.Commands.
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

// allowedTo reports whether a user may send the command. Every user may log in.
func (c *command) allowedTo(u *acl.User) bool { return u.MayCall(c.Slot) || c.noAuth }
