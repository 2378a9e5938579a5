package limits

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-project/weir/engine"
)

// Reserved parses the part of a policy that is reserved for high priority, like 20% or 12.5%, in thousandths.
func Reserved(b []byte) (int64, error) {
	bad := Bad("RESERVED", "must be from 0.1% to 99.9%, like 20%", b)
	number, percent := strings.CutSuffix(string(b), "%")
	whole, tenths, _ := strings.Cut(number, ".")
	n, err := strconv.ParseUint(whole, 10, 8)
	if !percent || err != nil || len(tenths) > 1 || strings.HasSuffix(number, ".") {
		return 0, bad
	}
	n *= 10
	if tenths != "" {
		tenth, err := strconv.ParseUint(tenths, 10, 8)
		if err != nil {
			return 0, bad
		}
		n += tenth
	}
	if n < 1 || n > engine.MaxReserved {
		return 0, bad
	}
	return int64(n), nil
}

// ReservedText formats thousandths in the syntax of Reserved.
func ReservedText(n int64) string {
	if n%10 == 0 {
		return fmt.Sprintf("%d%%", n/10)
	}
	return fmt.Sprintf("%d.%d%%", n/10, n%10)
}

// Report parses the value of REPORT: what decisions report as the limit of a bucket. For BURST it returns 0: the size
// of the bucket. For a duration it returns nanoseconds: the units that the rate gives in this time.
func (r *Reader) Report(b []byte) (int64, error) {
	if Is(b, "BURST") {
		return 0, nil
	}
	ns, err := duration("REPORT", b, r.leastNs(), "")
	if err != nil {
		err = OrWords(err, "BURST", "REPORT", b)
	}
	return ns, err
}

// ReportText formats a value in the syntax of Reader.Report, in lower case.
func ReportText(ns int64) string {
	if ns == 0 {
		return "burst"
	}
	return engine.FormatDuration(ns)
}
