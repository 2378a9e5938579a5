package commands

import (
	"slices"
	"strconv"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/scripts"
	"github.com/weir-project/weir/server/servertest"
)

// argumentValues maps the name of an argument in the syntax lines to its values.
var argumentValues = map[string][]string{
	"rate":    {"10/s", "1/s", "3/7s", "100/m", "1/d", "9007199254740992/s", "7/366d", "1/1us", "5/90ms"},
	"window":  {"1s", "10ms", "1m", "1h", "366d", "7s", "1ms"},
	"zone":    {"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"},
	"id":      {"i1", "i2", "i3"},
	"policy":  {"p1", "p2", "p3"},
	"pattern": {"*", "rl.check*", "rl.*:0:1"},
	"part":    {"20%", "12.5%", "0.1%", "99.9%"},
	"field":   {"tokens", "lastRefill", "used", "x"},
	"layout":  {"rl:{policy}:{key}", "{key}"},
	"per":     {"BURST", "1s", "1m"},
	"text":    {"reason"},
	"k":       {"1"},
	"samples": {"1"},
	"address": {"192.0.2.1", "::ffff:192.0.2.3", "2001:db8::1", "192.0.2.9:80", "198.51.100.1", "198.51.100.2",
		"198.51.100.3", "198.51.100.4", "198.51.100.5"},
	"member": {"192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::2", "2001:db8::/64"},
}

// sameValues maps a name to another name that has the same values.
var sameValues = map[string]string{
	"duration": "window", "ttl": "window", "penalty": "window", "token": "id", "holder": "id", "name": "policy",
}

// value draws a value of an argument, and occasionally an invalid one.
func (g *commandSource) value(cmd *command, name string) string {
	if other, ok := sameValues[name]; ok {
		name = other
	}
	values, known := argumentValues[name]
	switch {
	case g.IntN(60) == 0:
		return pick(g, oddNumbers)
	case name == "id" && cmd.Full != "rl.acquire" && cmd.Full != "rl.reserve" && g.IntN(2) == 0:
		return g.held
	case name == "id" && cmd.Full != "rl.acquire": // of a hold
		id := "h" + strconv.Itoa(g.drawn/500) + "." + strconv.Itoa(g.IntN(3))
		if cmd.Full == "rl.reserve" {
			g.held = id
		}
		return id
	case name == "key" && slices.ContainsFunc(blacklistCommands(), func(c *command) bool { return c.name == cmd.name }):
		return blacklistKey
	// a name that a layout makes
	case name == "key" && (cmd.group == groupCorrect || cmd.group == groupLook) && g.IntN(4) == 0:
		return "rl:" + pick(g, argumentValues["policy"]) + ":" + g.key("rl.check")
	case name == "key":
		return g.key(g.kindOfKey(cmd))
	case known:
		return pick(g, values)
	case slices.Contains([]string{"high", "normal", "usage", "return", "take"}, name):
		return name
	case name == "time":
		return strconv.FormatInt(servertest.TestWallNs/int64(pick(g, []int{1e6, 1e9}))+g.Int64N(1e6), 10)
	case g.IntN(12) == 0:
		return pick(g, wholeNumbers)
	case g.IntN(30) == 0:
		return strconv.Itoa(int(engine.MaxLogUnits) - g.IntN(2))
	}
	return strconv.Itoa(1 + g.IntN(20))
}

// keysOf maps a command to the command that creates the keys it acts on.
var keysOf = map[string]string{"rl.release": "rl.acquire", "rl.renew": "rl.acquire", "rl.reserve": "rl.check",
	"rl.holds": "rl.check"}

// kindOfKey returns the command that creates the keys which cmd acts on.
func (g *commandSource) kindOfKey(cmd *command) string {
	switch {
	case keysOf[cmd.Full] != "":
		return keysOf[cmd.Full]
	case slices.ContainsFunc(slices.Concat(countCommands(), stringCommands()),
		func(c *command) bool { return c.name == cmd.name }):
		return "count"
	case cmd.group == groupDecide || cmd.group == groupDialect || cmd.group == groupPolicy:
		return cmd.Full
	}
	return g.kindOfKey(pick(g, g.commands)) // corrects, or looks
}

func (g *commandSource) scriptArg(kind scripts.ArgKind) string {
	whole := kind == scripts.ArgInteger || kind == scripts.ArgWhole || kind == scripts.ArgHits
	switch {
	case g.IntN(20) == 0:
		return pick(g, oddNumbers)
	case kind == scripts.ArgTrue || kind == scripts.ArgOne:
		return pick(g, []string{"true", "1", "false", "0"})
	case kind == scripts.ArgIgnored:
		return "x"
	case whole && g.IntN(2) == 0:
		return pick(g, wholeNumbers)
	case whole || g.IntN(4) == 0:
		return strconv.Itoa(1 + g.IntN(2000))
	case g.IntN(4) == 0:
		return pick(g, wholeNumbers)
	case g.IntN(8) == 0: // the client's time in milliseconds, or seconds
		return strconv.FormatInt(servertest.TestWallNs/int64(pick(g, []int{1e6, 1e9}))+g.Int64N(1e6), 10)
	}
	return strconv.FormatFloat(g.Float64()*float64(pick(g, []int64{1, 3, 100, 1e6, 1e15})), 'g', 3+g.IntN(15), 64)
}

var (
	wholeNumbers = []string{
		"1", "2", "3", "10", "1000", "60000", "2147483647", "2147483648", "4294967296", "4503599627370495",
		"4503599627370496", "4503599627370497",
		"4503599627370497", "4503599627370497", "9007199254740990", "9007199254740991", "9007199254740992",
	}
	oddNumbers = []string{
		"", "0", "-0", "-0.0", "-1", "-3", "-2.5", "0.036", "0.1", "1.5", "2.999999999999999", "1e-9", "1e-300",
		"5e-324", "4.9e15", "1e15", "1e16", "1e308", "1e400",
		"-9007199254740992", "9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808",
		"-9223372036854775808",
		"nan", "NaN", "inf", "-inf", "0x10", " 1", "1 ", "x", "1e", "01", "+1",
	}
)
