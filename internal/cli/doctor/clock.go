package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/weir-project/weir/internal/millis"
)

const (
	// clockErrorMax is the maximum error of the wall clock by the kernel's estimate. The alert WeirClockSkew has the
	// same bound.
	clockErrorMax = time.Second
	// clockBehindMax is how far windows may differ from the wall clock. The alert WeirClockBehind has the same bound.
	clockBehindMax = 5 * time.Second
	// futureSlack is how far in the future the time of a file may lie, for file systems that round.
	futureSlack = 2 * time.Second
)

const lookAfterNTP = "check chrony, ntpd or systemd-timesyncd; limits follow the monotonic clock, windows of clock " +
	"and calendar the wall clock"

// discipline is the kernel's information on the synchronization of the wall clock.
type discipline struct {
	synced   bool
	maxError time.Duration
	source   string // of the kernel's time: tsc, kvm-clock, ...; "": not known
}

func (d *Subject) lookAtClock(up *running) []Finding {
	var found []Finding
	if kernel, ok := clockDiscipline(); ok {
		found = append(found, judgeClock(kernel))
	}
	if at, ok := writtenLast(d.DataDir); ok && time.Until(at) > futureSlack {
		found = append(found,
			Finding{Doubt, "clock",
				fmt.Sprintf("the wall clock is %v behind the time of the last write of the state: it was set back",
					time.Until(at).Round(time.Second)),
				"correct it before the start; weir's time never goes back, so the downtime counts as zero"})
	}
	if up != nil {
		found = append(found, judgeBehind(up.info["clock_behind_ms"])...)
	}
	if len(found) == 0 {
		found = append(found, Finding{Fine, "clock", "this system does not report whether the clock is synchronised",
			""})
	}
	return found
}

func judgeClock(k discipline) Finding {
	source := ""
	if k.source != "" {
		source = ", the kernel's time comes from " + k.source
	}
	switch {
	case !k.synced:
		return Finding{Doubt, "clock", "the kernel reports that the wall clock is not synchronised", lookAfterNTP}
	case k.maxError > clockErrorMax:
		return Finding{Doubt, "clock",
			fmt.Sprintf("the wall clock may be off by %v", k.maxError.Round(time.Millisecond)), lookAfterNTP}
	case k.source == "hpet" || k.source == "acpi_pm":
		return Finding{Doubt, "clock", "synchronised, but slow to read" + source,
			"see in the kernel's log why the kernel does not use tsc: each decision reads the clock"}
	}
	return Finding{Fine, "clock",
		fmt.Sprintf("synchronised, off by at most %v%s", k.maxError.Round(time.Millisecond), source), ""}
}

// judgeBehind checks how far the server's windows differ from the wall clock. An older server does not report this.
func judgeBehind(text string) []Finding {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	behind := millis.Duration(ms)
	if behind.Abs() > clockBehindMax {
		return []Finding{{Doubt, "clock",
			fmt.Sprintf("windows of clock and calendar are %v behind the wall clock: the clock was set, a backup was "+
				"restored, or the server was down for long", behind),
			"wait: weir corrects one second in about half an hour; find out what sets the clock"}}
	}
	return []Finding{{Fine, "clock", fmt.Sprintf("windows of clock and calendar are %v behind the wall clock", behind),
		""}}
}

// writtenLast returns when a file in a data directory last changed.
func writtenLast(dir string) (last time.Time, ok bool) {
	for _, name := range []string{"FLUSHED", "FORMAT", "NODE"} {
		if file, err := os.Stat(filepath.Join(dir, name)); err == nil && file.ModTime().After(last) {
			last, ok = file.ModTime(), true
		}
	}
	return last, ok
}
