package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/server"
)

// view is a status and the one before it, nil when it is the first.
type view struct {
	at        string
	now, last *server.Status
}

func (v *view) text() string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	n := v.now
	fmt.Fprintf(t, "weir\t%s at %s, up %v, %s\n", n.Version, v.at, time.Duration(n.UptimeS)*time.Second, v.leaderText())
	allowed, limited := v.rate(func(s *server.Status) int64 { return s.Allowed }), v.rate(func(s *server.Status) int64 { return s.Limited })
	fmt.Fprintf(t, "requests\t%s/s allowed, %s/s limited; %d and %d since the start\n", perSecond(allowed), perSecond(limited), n.Allowed, n.Limited)
	fmt.Fprintf(t, "decided\thalf within %s, 90 %% %s, 99 %% %s, 99.9 %% %s\n", v.quantile(.5), v.quantile(.9), v.quantile(.99), v.quantile(.999))
	fmt.Fprintf(t, "memory\t%s for %d limiters, %d given up for room with %d units; process %s\n", boundText(&n.Memory), n.Keys, n.Memory.Evicted, n.Memory.Forgiven, bytesText(n.Memory.Resident))
	fmt.Fprintf(t, "clients\t%d; clock %d ms behind\n", n.Clients, n.Clock)
	_ = t.Flush() // to memory
	v.nodes(&b)
	v.policies(&b)
	v.heaviest(&b)
	return b.String()
}

func (v *view) leaderText() string {
	switch c := v.now.Cluster; {
	case c == nil:
		return "one node"
	case c.Leader == "":
		return "NO LEADER: nothing is decided; answered by " + plainText(c.Self) + staleText(c.StaleMs)
	default:
		return plainText(c.Leader) + " leads; answered by " + plainText(c.Self) + staleText(c.StaleMs)
	}
}

// staleText returns how old an answer may be, or "" for a linearizable answer.
func staleText(ms int64) string {
	switch {
	case ms == 0:
		return ""
	case ms >= raftstore.UnknownAge.Milliseconds():
		return ", stale: age unknown"
	}
	return fmt.Sprintf(", stale: %v", time.Duration(ms)*time.Millisecond)
}

// table writes rows below a line of names, where there are any.
func table(b *strings.Builder, names string, rows []string) {
	if len(rows) == 0 {
		return
	}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\n%s\n%s\n", names, strings.Join(rows, "\n"))
	_ = t.Flush()
}

func (v *view) nodes(b *strings.Builder) {
	if v.now.Cluster == nil {
		return
	}
	var rows []string
	for _, n := range v.now.Cluster.Nodes {
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%d\t%d ms\t%s", plainText(n.ID), n.Role, upText(n.Up), n.Lag, n.ClockAheadMs, plainText(n.Addr)))
	}
	table(b, "NODE\tROLE\tUP\tBEHIND\tCLOCK AHEAD\tCLIENTS", rows)
}

func (v *view) policies(b *strings.Builder) {
	before := make(map[string]server.PolicyStatus)
	if v.last != nil {
		for _, p := range v.last.Policies {
			before[p.Name] = p
		}
	}
	var rows []string
	for _, p := range v.now.Policies {
		allowed, limited := "-", "-"
		if old, ok := before[p.Name]; ok {
			allowed, limited = perSecond(v.grew(old.Allowed, p.Allowed)), perSecond(v.grew(old.Limited, p.Limited))
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%d\t%d\t%d", plainText(p.Name), allowed, limited, p.Allowed, p.Limited, p.Shadowed))
	}
	table(b, "POLICY\tALLOWED/S\tLIMITED/S\tALLOWED\tLIMITED\tAS A SHADOW", rows)
}

func (v *view) heaviest(b *strings.Builder) {
	for _, top := range []struct {
		names string
		keys  []server.TopKey
	}{{"MOST ADMITTED OF LATE\tUNITS", v.now.Admitted}, {"MOST DENIED OF LATE\tUNITS", v.now.Denied}} {
		var rows []string
		for _, k := range top.keys {
			rows = append(rows, fmt.Sprintf("%s\t%d", plainText(k.Key), k.Units))
		}
		table(b, top.names, rows)
	}
}

// rate is how much a counter grew a second; -1 when it is not known yet.
func (v *view) rate(of func(*server.Status) int64) float64 {
	if v.last == nil {
		return -1
	}
	return v.grew(of(v.last), of(v.now))
}

// grew is how much a counter grew a second since the last status; one that began anew
// grew from 0.
func (v *view) grew(from, to int64) float64 {
	seconds := float64(v.now.NowMs-v.last.NowMs) / 1000
	if to < from {
		from = 0
	}
	if seconds <= 0 {
		return -1
	}
	return float64(to-from) / seconds
}

func perSecond(rate float64) string {
	if rate < 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", rate)
}

// quantile reads the time that so many decisions stayed within off what the histogram
// gained; since the start at the first look.
func (v *view) quantile(q float64) string {
	gained, all := v.gained()
	sum, bounds := int64(0), v.now.Latency.BoundsS
	for i, n := range gained {
		if sum += n; all > 0 && float64(sum) >= q*float64(all) {
			if i == len(bounds) {
				return "> " + seconds(bounds[i-1])
			}
			return seconds(bounds[i])
		}
	}
	return "-"
}

func (v *view) gained() (gained []int64, all int64) {
	for i, n := range v.now.Latency.Counts {
		if v.last != nil && v.last.UptimeS <= v.now.UptimeS {
			n -= v.last.Latency.Counts[i]
		}
		gained, all = append(gained, n), all+n
	}
	return gained, all
}

func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	return d.Round(max(d/100, 100)).String()
}

func boundText(m *server.MemoryStatus) string {
	if m.Max == 0 {
		return bytesText(uint64(m.Used)) + " without a bound"
	}
	return bytesText(uint64(m.Used)) + " of " + bytesText(uint64(m.Max))
}
