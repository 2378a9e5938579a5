package top

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/weir-project/weir/internal/cli/cmdline"
	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/internal/cli/terminal"
	"github.com/weir-project/weir/server/httpapi"
)

// view is a status and two earlier statuses, which are nil for the first status.
type view struct {
	at        string
	now, last *httpapi.Status
	since     *httpapi.Status // the oldest status of the last Window
}

// text returns the whole view, for an output that is not a screen.
func (v *view) text() string {
	lines := append(append(v.head(), v.nodes()...), v.events(unbounded)...)
	lines = append(lines, v.policies(unbounded, unbounded)...)
	for _, keys := range v.heaviest() {
		lines = append(lines, keys.lines(unbounded)...)
	}
	return strings.Join(lines, "\n") + "\n"
}

// head returns the lines of single values, each with its name first.
func (v *view) head() []string {
	n := v.now
	allowed := v.rate(func(s *httpapi.Status) int64 { return s.Allowed })
	denied := v.rate(func(s *httpapi.Status) int64 { return s.Limited })
	lines := []string{
		fmt.Sprintf("weir      %s at %s, up %v, %s",
			n.Version, v.at, time.Duration(n.UptimeS)*time.Second, v.leaderText()),
		fmt.Sprintf("requests  %s/s allowed, %s/s denied, %s; %d allowed and %d denied since the start",
			perSecond(allowed), perSecond(denied), v.covers(), n.Allowed, n.Limited),
		fmt.Sprintf("decided   50 %% within %s, 90 %% %s, 99 %% %s, 99.9 %% %s, %s",
			v.quantile(.5), v.quantile(.9), v.quantile(.99), v.quantile(.999), v.covers()),
		fmt.Sprintf("memory    %s for %d limiters, %d evicted with %d units; process %s",
			boundText(&n.Memory), n.Keys, n.Memory.Evicted, n.Memory.Forgiven, cmdline.BytesText(n.Memory.Resident)),
		fmt.Sprintf("clients   %d; clock %d ms behind", n.Clients, n.Clock),
	}
	return append(lines, v.refused()...)
}

// refused returns a line about requests that the server does not support, or nothing if there were none.
func (v *view) refused() []string {
	if len(v.now.Unsupported) == 0 {
		return nil
	}
	u := &v.now.Unsupported[0]
	return []string{fmt.Sprintf("refused   %s of %s, %d times, because weir does not support it: see weir doctor",
		terminal.PlainText(u.Command), terminal.PlainText(u.By()), u.Count)}
}

// covers returns the period that the numbers of requests cover.
func (v *view) covers() string {
	if v.last == nil {
		return "since the start"
	}
	return "in the last " + between(v.last, v.now)
}

// between returns the time from one status to another, in whole seconds.
func between(from, to *httpapi.Status) string {
	return fmt.Sprintf("%d s", max(1, (to.NowMs-from.NowMs+500)/1000))
}

func (v *view) leaderText() string {
	c := v.now.Cluster
	if c == nil {
		return "one node"
	}
	led := cmp.Or(c.Groups.Leaders, "led by "+cmp.Or(c.Leader, "nobody")) // version 0.1.0 names the leader alone
	return terminal.PlainText(led) + "; answered by " + terminal.PlainText(c.Self) +
		remote.StaleText(c.StaleMs)
}

func (v *view) nodes() []string {
	if v.now.Cluster == nil {
		return nil
	}
	rows := []string{"NODE\tROLE\tUP\tENTRIES BEHIND\tCLOCK AHEAD\tCLIENTS"}
	for _, n := range v.now.Cluster.Nodes {
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%d\t%d ms\t%s", terminal.PlainText(n.ID), n.Role,
			remote.UpText(n.Up), n.Lag, n.ClockAheadMs, terminal.PlainText(n.Addr)))
	}
	return append([]string{""}, columns(rows, 0)...)
}

// events returns a table of at most so many events, the newest first.
func (v *view) events(most int) []string {
	if len(v.now.Events) == 0 || most < 1 {
		return nil
	}
	rows := []string{"AMOUNT\tUSED\tOF\tAT\tEVENT, POLICY, KEY"}
	for _, e := range v.now.Events[:min(len(v.now.Events), most)] {
		kind := e.Kind
		if e.Share > 0 {
			kind += fmt.Sprintf(" %d %%", e.Share)
		}
		at := time.UnixMilli(e.AtMs).Format(time.TimeOnly)
		rows = append(rows, fmt.Sprintf("%d\t%d\t%d\t%s\t%s, %s, %s", e.Amount, e.Used, e.Limit, at, kind,
			terminal.PlainText(e.Policy), terminal.PlainText(e.Key)))
	}
	return append([]string{""}, rightAligned(rows)...)
}

// rate returns the growth of a counter per second, or -1 while it is not known.
func (v *view) rate(of func(*httpapi.Status) int64) float64 {
	if v.last == nil {
		return -1
	}
	return v.grew(v.last, of(v.last), of(v.now))
}

// grew returns the growth of a counter per second since an earlier status. A counter that was reset grew from 0.
func (v *view) grew(since *httpapi.Status, from, to int64) float64 {
	seconds := float64(v.now.NowMs-since.NowMs) / 1000
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
	if rate > 0 && rate < 10 {
		return fmt.Sprintf("%.1f", rate)
	}
	return fmt.Sprintf("%.0f", rate)
}

// quantile returns the time below which the fraction q of the decisions stayed, from the growth of the histogram. The
// first status covers the time since the start.
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

func boundText(m *httpapi.MemoryStatus) string {
	if m.Max == 0 {
		return cmdline.BytesText(uint64(m.Used)) + ", no bound"
	}
	return fmt.Sprintf("%s of %s (%s %%)", cmdline.BytesText(uint64(m.Used)), cmdline.BytesText(uint64(m.Max)),
		share(float64(m.Used), float64(m.Max)))
}
