package limits

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-project/weir/engine"
)

// notify reads NOTIFY and its thresholds, like NOTIFY 50% 80% 100%, and returns the arguments before it. Nothing may
// follow the thresholds.
func notify(l *engine.PolicyLimit, args [][]byte) (rest [][]byte, err error) {
	at := slices.IndexFunc(args, func(word []byte) bool { return Is(word, "NOTIFY") })
	if at < 0 {
		return args, nil
	}
	if l.Limit.Algorithm != engine.FixedWindow {
		return nil, Error("NOTIFY goes with FIXED only, because a threshold is reported once in a window that ends")
	}
	l.Notify, err = Notify(args[at+1:])
	return args[:at], err
}

// Notify parses thresholds in percent of a limit, like 50% 80% 100%.
func Notify(args [][]byte) (engine.Thresholds, error) {
	accepted := fmt.Sprintf("must be 1 to %d ascending thresholds from 1%% to 100%%, at the end of the limit, "+
		"like NOTIFY 50%% 80%% 100%%", engine.MaxThresholds)
	if len(args) == 0 {
		return "", Bad("NOTIFY", accepted, nil)
	}
	var all []byte
	for _, b := range args {
		number, percent := strings.CutSuffix(string(b), "%")
		n, err := strconv.ParseUint(number, 10, 7)
		all = append(all, byte(n))
		if err != nil || !percent || n == 0 || !engine.Thresholds(all).Valid() {
			return "", Bad("NOTIFY", accepted, b)
		}
	}
	return engine.Thresholds(all), nil
}

// NotifyText formats thresholds in the syntax of Notify.
func NotifyText(t engine.Thresholds) string {
	texts := make([]string, len(t))
	for i := range len(t) {
		texts[i] = strconv.Itoa(int(t[i])) + "%"
	}
	return strings.Join(texts, " ")
}
