package cmdline

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ByteSize is a number of bytes, written like 512, 64kb, 100mb or 1gb. kb is 1024 bytes, as in Redis.
type ByteSize int64

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"gb", 1 << 30}, {"mb", 1 << 20}, {"kb", 1 << 10}, {"b", 1}, {"", 1}}

// UnmarshalText reads the size.
func (b *ByteSize) UnmarshalText(text []byte) error {
	lower := strings.ToLower(string(text))
	for _, unit := range sizeUnits {
		digits, ok := strings.CutSuffix(lower, unit.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || int64(n) > math.MaxInt64/unit.bytes {
			break
		}
		*b = ByteSize(int64(n) * unit.bytes)
		return nil
	}
	return fmt.Errorf("must be like 64kb, 100mb or 4gb (in kb, mb or gb of 1024; a bare 1000000 is bytes), not %q",
		text)
}

// BytesText formats a number of bytes for reading, like 1.5mb.
func BytesText(n uint64) string {
	for _, unit := range sizeUnits[:3] {
		if n >= uint64(unit.bytes) {
			return fmt.Sprintf("%.1f%s", float64(n)/float64(unit.bytes), unit.suffix)
		}
	}
	return fmt.Sprintf("%db", n)
}
