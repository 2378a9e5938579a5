package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/cli/remote"
)

// says checks that a finding has this verdict, this check's name and this text.
func says(t *testing.T, found []Finding, v Verdict, check, text string) {
	t.Helper()
	for _, f := range found {
		if f.Verdict == v && f.Check == check && bytes.Contains([]byte(f.Found), []byte(text)) {
			require.Equal(t, v == Fine, f.Do == "", "%s: a finding has advice if and only if it is not fine",
				text)
			return
		}
	}
	t.Fatalf("nothing says %s %s %q: %+v", v, check, text, found)
}

func TestDoctorJudges(t *testing.T) {
	status := func(leader string, up ...bool) (s remote.Status) {
		s.Groups = []remote.GroupStatus{{Leader: leader, LastSlot: 16383}}
		for i, u := range up {
			s.Nodes = append(s.Nodes, remote.NodeStatus{ID: string(rune('a' + i)), Voter: true, Up: u})
		}
		return s
	}
	grouped := status("a", true, true, true)
	grouped.Groups = []remote.GroupStatus{{Leader: "a"}, {Leader: "b"}}
	leaderless := status("a", true, true, true)
	leaderless.Groups = []remote.GroupStatus{{Leader: "a"}, {}}
	ended := status("a", true, true, true)
	ended.Node = "a"
	ended.Groups = []remote.GroupStatus{{LastSlot: 8191, Ended: "it differs"}, {Leader: "b"}}
	spread := func(up int) (s remote.Status) { // two of six nodes are gone, and as many replicas of a group are up
		text := fmt.Sprintf(`{"replicas": 3, "groups": [{"leader": "a", "replicas_up": %d}]}`, up)
		require.NoError(t, json.Unmarshal([]byte(text), &s))
		s.Nodes = status("a", true, true, true, true, false, false).Nodes
		return s
	}
	judge := func(s remote.Status) []Finding { return judgeStatus(&s) }
	const spare = 1000 // file descriptors beyond those of clients
	slow := status("a", true, true, true)
	slow.Nodes[1].LagEntries, slow.Nodes[2].ClockAheadMs = lagMax+1, -2000
	bounded := func(bytes int64) *Subject { return &Subject{MemoryBound: func(int64) int64 { return bytes }} }
	d := bounded(1 << 30)
	now := time.Now()
	sent := func(n int, ago time.Duration, u use) []Finding {
		u.Advice, u.LastMs = "use another", now.Add(-ago).UnixMilli()
		return judgeUses(slices.Repeat([]use{u}, n), now)
	}
	for _, c := range []struct {
		found []Finding
		want  Verdict
		text  string
	}{
		{judge(status("a", true, true, true)), Fine, "3 of 3 voters are up; led by a"},
		{judge(status("a", true, true, false)), Doubt, "2 of 3 voters are up"},
		{judge(status("a", true, true, false)), Doubt, "c was last heard of: never"},
		{judge(status("", true, false, false)), Wrong,
			"1 of 1 groups have no leader: nothing is decided for their keys"},
		{judge(status("", true, false, false)), Wrong, "1 of 3 voters are up"},
		{judge(status("a", true, true, true, true)), Doubt, "4 of 4 voters"},
		{judge(status("a", true)), Fine, "1 of 1 voters"},
		{judge(grouped), Fine, "3 of 3 voters are up; led by a, b"},
		{judge(spread(3)), Fine, "4 of 6 voters are up; led by a"},
		{judge(spread(2)), Doubt, "1 of 1 groups have fewer than 3 replicas that are up"},
		{judge(leaderless), Wrong, "1 of 2 groups have no leader"},
		{judge(ended), Wrong, "the group of the slots 0 to 8191 has ended on a: it differs"},
		{judge(slow), Doubt, "b is 10001 entries behind"},
		{judge(slow), Doubt, "the clock of c is -2s ahead"},
		{[]Finding{judgeClock(discipline{synced: true, maxError: time.Millisecond, source: "tsc"})}, Fine,
			"off by at most 1ms"},
		{[]Finding{judgeClock(discipline{maxError: time.Millisecond})}, Doubt, "the wall clock is not synchronised"},
		{[]Finding{judgeClock(discipline{synced: true, maxError: time.Minute})}, Doubt, "off by 1m0s"},
		{[]Finding{judgeClock(discipline{synced: true, source: "hpet"})}, Doubt, "hpet"},
		{judgeBehind("-3"), Fine, "-3ms behind"},
		{judgeBehind("6000"), Doubt, "6s behind"},
		{[]Finding{volume{"ext4", 5 << 30, 10 << 30}.judge("d")}, Fine, "5.0gb free of 10.0gb"},
		{[]Finding{volume{"ext4", 5 << 30, 100 << 30}.judge("d")}, Doubt, "5.0gb free"},
		{[]Finding{volume{"ext4", 5 << 20, 10 << 20}.judge("d")}, Wrong, "5.0mb free"},
		{[]Finding{volume{kind: tmpfs}.judgeKind("d")}, Doubt, "which is memory"},
		{[]Finding{volume{kind: overlay}.judgeKind("d")}, Doubt, "the writable layer of a container"},
		{[]Finding{volume{kind: "nfs"}.judgeKind("d")}, Doubt, "nfs"},
		{[]Finding{volume{}.judgeKind("d")}, Fine, "unknown by name"},
		{[]Finding{judgeSync(30*time.Millisecond, false)}, Fine, "30ms"},
		{[]Finding{judgeSync(30*time.Millisecond, true)}, Doubt, "30ms"},
		{[]Finding{judgeSync(2*time.Second, false)}, Wrong, "2s"},
		{[]Finding{judgeFiles(spare, spare, 10)}, Wrong, "too few file descriptors"},
		{[]Finding{judgeFiles(spare+9, spare, 10)}, Doubt, "enough for 9 clients"},
		{[]Finding{judgeFiles(spare+10, spare, 10)}, Fine, "enough for 10 clients"},
		{[]Finding{d.judgeMemory(2<<30, nil)}, Fine, "1.0gb of 2.0gb"},
		{[]Finding{d.judgeMemory(1<<30, nil)}, Doubt, "1.0gb of 1.0gb"},
		{[]Finding{bounded(0).judgeMemory(1<<30, nil)}, Doubt, "no bound"},
		{judgeUses(nil, now), Fine, "refused nothing"},
		{sent(1, 25*time.Hour, use{Command: "lpush"}), Fine, "refused nothing"},
		{sent(1, time.Minute, use{Kind: "command", Command: "lpush", Client: "api", Addr: "192.0.2.1:1", Count: 3}),
			Doubt,
			"api, 192.0.2.1:1 sent LPUSH (command), which weir does not support: 3 times, the last 1m0s ago"},
		{sent(1, 0, use{Kind: "script", Command: "eval", SHA1: "ab", Library: "limits"}), Doubt,
			"limits sent the script ab, which"},
		{sent(1, 0, use{Kind: "refused", Command: "client|tracking"}), Doubt, "CLIENT TRACKING (refused)"},
		{sent(usesShown+2, 0, use{Command: "other"}), Doubt, "2 more requests were refused"},
	} {
		for i := range c.found {
			c.found[i].Check = ""
		}
		says(t, c.found, c.want, "", c.text)
	}
}

// TestDoctorSeesAClockThatWasSetBack checks the warning for a wall clock that is earlier than the last write. A
// machine with an empty clock battery starts like that.
func TestDoctorSeesAClockThatWasSetBack(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "FORMAT")
	require.NoError(t, os.WriteFile(path, []byte("weir data format 5\n"), 0o600))
	later := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(path, later, later))
	d := &Subject{DataDir: dir}
	says(t, d.lookAtClock(nil), Doubt, "clock", "behind the time of the last write of the state")
}
