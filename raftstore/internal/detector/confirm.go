package detector

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/weir-project/weir/internal/faults"
)

// answerFraction divides the limit: the time in which a host must answer a question.
const answerFraction = 4

// question asks a host whether another host is silent.
type question struct {
	Silent string // the inter-node address of the host in question
	Groups []int  // the groups that it led
}

// answer is the answer of a witness.
type answer struct {
	Silent bool
	// LeftNs is the time until the host in question has been silent for the limit, if it is not heard again; 0: none.
	LeftNs int64 `json:",omitempty"`
	// Last are the last log indexes of the groups in which the witness votes.
	Last map[int]uint64 `json:",omitempty"`
}

// witness is a host that confirmed a silence.
type witness struct {
	addr string
	last map[int]uint64
}

// Answer answers a question of another host.
func (d *Detector) Answer(asked []byte) ([]byte, error) {
	var q question
	if err := json.Unmarshal(asked, &q); err != nil {
		return nil, err
	}
	a := d.answerAbout(q.Silent, time.Now())
	if a.Silent {
		a.Last = d.lastOf(q.Groups)
	}
	return json.Marshal(a)
}

// answerAbout says whether this host has heard nothing from another host for the limit.
func (d *Detector) answerAbout(addr string, now time.Time) (a answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noticePause(now)
	h := d.hosts[addr]
	if h == nil {
		return a
	}
	left, ok := d.left(h, now)
	a.Silent = ok && left <= 0
	if ok && left > 0 {
		a.LeftNs = int64(left)
	}
	return a
}

// lastOf returns the last log indexes of those groups in which this host votes. It looks at each group once.
func (d *Detector) lastOf(groups []int) map[int]uint64 {
	last := map[int]uint64{}
	slices.Sort(groups)
	for _, g := range slices.Compact(groups) {
		if v, ok := d.Groups.View(g); ok && v.votes(d.Self) {
			last[g] = v.Last
		}
	}
	return last
}

// confirm asks the other hosts about a silent host, and plans elections in the groups whose majority confirms.
func (d *Detector) confirm(ctx context.Context, h *host, s *silence) {
	groups := d.Groups.LedBy(h.Addr)
	witnesses, left := d.askAll(ctx, h, groups)
	own := witness{d.Self, d.lastOf(groups)}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	s.asking = false
	if s.askNext = now.Add(d.askAgain(s, now)); left > 0 {
		s.askNext = now.Add(left)
	}
	if h.silence != s || len(witnesses) == 0 && !d.Faults.Has(faults.NoWitness) {
		return // the host was heard, or this process was paused, or nobody confirms
	}
	if !s.counted {
		s.counted = true
		d.Confirmed.Add(1)
		d.Log.Info("a node is silent, and another node confirms it", "node", h.ID, "silent", now.Sub(s.since),
			"groups_led", len(groups))
	}
	for _, g := range groups {
		d.plan(h, s, g, append(witnesses, own), now)
	}
	d.carryOut(ctx, h, s, now)
}

// askAll asks every other host about h. It returns the hosts that confirm the silence, and the shortest time after
// which another one may.
func (d *Detector) askAll(ctx context.Context, h *host, groups []int) (confirm []witness, left time.Duration) {
	asked, _ := json.Marshal(question{h.Addr, groups}) // strings and integers always encode
	others := d.others(h)
	ctx, cancel := context.WithTimeout(ctx, d.Limit/answerFraction)
	defer cancel()
	type reply struct {
		of Host
		answer
	}
	replies := make(chan reply, len(others))
	for _, other := range others {
		d.tasks.Go(func() {
			r := reply{of: other}
			if said, err := d.Network.Ask(ctx, other, asked); err != nil || json.Unmarshal(said, &r.answer) != nil {
				r.answer = answer{}
			}
			replies <- r
		})
	}
	for range others {
		switch r := <-replies; {
		case r.Silent:
			confirm = append(confirm, witness{r.of.Addr, r.Last})
		case r.LeftNs > 0 && (left == 0 || time.Duration(r.LeftNs) < left):
			left = time.Duration(r.LeftNs)
		}
	}
	return confirm, left
}

// others returns all hosts but h.
func (d *Detector) others(h *host) (others []Host) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.hosts {
		if o != h {
			others = append(others, o.Host)
		}
	}
	return others
}
