package detector

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/weir-project/weir/internal/faults"
)

const (
	// staggerFraction divides the limit: the time in which the election of one voter must be decided before the next
	// voter stands. An election takes two round trips and a write of the vote on each disk.
	staggerFraction = 2
	// maxTries bounds how often a host stands for election in one group during one silence. Then the group's own
	// timeouts are left.
	maxTries = 3
)

// Groups are the replicas of this host.
type Groups interface {
	// LedBy returns the groups whose leader, as this host knows it, is another host.
	LedBy(addr string) []int
	// View describes a group. ok is false if the group has ended here.
	View(group int) (v View, ok bool)
	// Elect makes the replica of this host stand for election in a group, unless the group has another leader than the
	// host old. It returns when ctx ends at the latest.
	Elect(ctx context.Context, group int, old string)
}

// View is what this host knows about a group.
type View struct {
	Leader string // the inter-node address of its leader; "": unknown
	Term   uint64
	Last   uint64   // index of the last entry in this host's log
	Voters []string // their inter-node addresses
}

func (v *View) votes(addr string) bool { return slices.Contains(v.Voters, addr) }

// plan is the election that this host will hold in a group.
type plan struct {
	term  uint64 // the term of the group when the plan was made or deferred
	due   time.Time
	again time.Duration // from one try to the next
	tries int
}

// plan plans an election in a group if a majority of its voters agrees that its leader is silent. There is one plan
// for a group in a silence. The caller holds mu.
func (d *Detector) plan(h *host, s *silence, group int, agree []witness, now time.Time) {
	v, ok := d.Groups.View(group)
	if !ok || v.Leader != h.Addr || s.plans[group] != nil || !v.votes(d.Self) {
		return
	}
	agree = slices.DeleteFunc(slices.Clone(agree), func(w witness) bool { return !v.votes(w.addr) })
	if len(agree) <= len(v.Voters)/2 && !d.Faults.Has(faults.NoWitness) {
		return
	}
	stagger := d.Limit / staggerFraction
	s.plans[group] = &plan{
		term: v.Term, due: now.Add(time.Duration(rank(d.Self, group, agree)) * stagger),
		again: time.Duration(len(agree)) * stagger,
	}
}

// rank returns how many of the voters that agree should stand for election before self: those with a longer log. Among
// equals the order differs from group to group, so that the groups of one leader get different ones.
func rank(self string, group int, agree []witness) (before int) {
	slices.SortFunc(agree, func(a, b witness) int { return strings.Compare(a.addr, b.addr) })
	own := slices.IndexFunc(agree, func(w witness) bool { return w.addr == self })
	turn := func(i int) int { return (i + group) % len(agree) }
	for i, w := range agree {
		last, mine := w.last[group], agree[own].last[group]
		if last > mine || last == mine && turn(i) < turn(own) {
			before++
		}
	}
	return before
}

// carryOut holds the elections that are due. The caller holds mu.
func (d *Detector) carryOut(ctx context.Context, h *host, s *silence, now time.Time) {
	for group, p := range s.plans {
		if p.tries == maxTries || now.Before(p.due) {
			continue
		}
		v, ok := d.Groups.View(group)
		switch {
		case !ok || v.Leader != "" && v.Leader != h.Addr || !v.votes(d.Self):
			p.tries = maxTries // done
			continue
		case v.Term > p.term: // another voter stands for election, or this one did
			p.term, p.due = v.Term, now.Add(d.Limit/staggerFraction)
			continue
		}
		p.tries++
		p.due = now.Add(p.again)
		d.tasks.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, d.Limit)
			defer cancel()
			d.Groups.Elect(ctx, group, h.Addr)
		})
	}
}
