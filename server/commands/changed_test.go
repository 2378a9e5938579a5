package commands

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// changed lists definitions that change while a key is in use. Each case begins on a Saturday at 12:00. Its lines are
//
//	limit FIXED 1h 5      the definition changes
//	+10s                  time passes
//	3 = 1 2 0 3600000 5   a check of cost 3 gets this answer
var changed = map[string]string{
	"a denial before a longer sliding log": `
		limit SLIDING 1m 10
		10 = 1 0 0 60000 10
		+10s
		limit SLIDING 1h 10
		1 = 0 0 3590000 3590000 10
		+45s
		1 = 0 0 3545000 3545000 10
		+10s
		1 = 0 0 3535000 3535000 10
		+3534999ms
		1 = 0 0 1 1 10
		+1ms
		1 = 1 9 0 3600000 10`,
	"a slower bucket": `
		limit TOKENBUCKET 100/s 1000
		1000 = 1 0 0 10000 1000
		limit TOKENBUCKET 1/d 1000
		+10s
		1000 = 0 0 86399990000 86399990000 1000
		1 = 0 0 86390000 86399990000 1000
		+86389999ms
		1 = 0 0 1 86313600001 1000
		+1ms
		1 = 1 0 0 86400000000 1000`,
	"a faster bucket, and the old one again": `
		limit TOKENBUCKET 1/d 1000
		1000 = 1 0 0 86400000000 1000
		limit TOKENBUCKET 100/s 1000
		+1s
		limit TOKENBUCKET 1/d 1000
		+24h
		102 = 0 101 86400000 77673600000 1000
		101 = 1 0 0 86400000000 1000`,
	"a shorter sliding log, and the old one again": `
		limit SLIDING 1h 5
		4 = 1 1 0 3600000 5
		+9500ms
		1 = 1 0 0 3600000 5
		+500ms
		limit SLIDING 1s 5
		limit SLIDING 1h 5
		5 = 0 4 3599500 3599500 5
		4 = 1 0 0 3600000 5`,
	"a longer window from the first request": `
		limit FIXED 1s 5 FIRST
		5 = 1 0 0 1000 5
		+500ms
		limit FIXED 1h 5 FIRST
		+10s
		1 = 0 0 3589500 3589500 5`,
	"a day instead of a week": `
		+48h
		limit FIXED WEEK 3
		2 = 1 1 0 561600000 3
		limit FIXED DAY 1
		0 = 0 0 43200000 43200000 1
		1 = 0 0 43200000 43200000 1
		+43199999ms
		1 = 0 0 1 1 1
		+1ms
		0 = 1 1 0 0 1
		1 = 1 0 0 86400000 1`,
	"another time zone": `
		limit FIXED DAY 3
		2 = 1 1 0 43200000 3
		limit FIXED DAY 3 TZ Asia/Kolkata
		0 = 1 1 0 23400000 3
		+6h30m
		3 = 1 0 0 86400000 3`,
	"longer counters": `
		limit SLIDINGCOUNTER 1m 10
		10 = 1 0 0 120000 10
		limit SLIDINGCOUNTER 1h 10
		0 = 1 0 0 7200000 10
		1 = 0 0 3960000 7200000 10
		+3959999ms
		1 = 0 0 1 3240001 10
		+1ms
		1 = 1 0 0 6840000 10`,
	"a slower queue": `
		limit LEAKYBUCKET 1/s 4
		5 = 1 0 4000 5000 4
		limit LEAKYBUCKET 1/m 4
		+1s
		0 = 1 0 0 299000 4
		1 = 0 0 59000 299000 4
		+59s
		1 = 1 0 240000 300000 4`,
	"raised, lowered below what was used, raised again: a bucket": `
		limit TOKENBUCKET 1/d 3
		3 = 1 0 0 259200000 3
		limit TOKENBUCKET 1/d 10
		0 = 1 7 0 259200000 10
		limit TOKENBUCKET 1/d 100
		7 = 1 90 0 864000000 100
		limit TOKENBUCKET 1/d 20
		0 = 1 10 0 864000000 20
		limit TOKENBUCKET 1/d 5
		1 = 0 0 86400000 432000000 5
		limit TOKENBUCKET 1/d 100
		0 = 1 95 0 432000000 100`,
	"another algorithm and back": `
		limit FIXED 1h 5
		5 = 1 0 0 3600000 5
		limit SLIDING 1h 5
		limit FIXED 1h 5
		0 = 1 5 0 0 5
		5 = 1 0 0 3600000 5`,
	"a milder lock": `
		limit STRIKE 15m 3 1h
		1 = 1 2 0 900000 3
		1 = 1 1 0 900000 3
		1 = 0 0 3600000 3600000 3
		limit STRIKE 15m 30 1m
		1 = 0 27 3600000 3600000 30
		+59m59999ms
		1 = 0 30 1 1 30
		+1ms
		1 = 1 29 0 900000 30`,
}

// forms are the ways to give a key its definitions, one after the other.
var forms = map[string]func(c *changedClient, i int){
	"of a policy": func(c *changedClient, i int) { c.set("SET p LIMIT " + c.limits[i]) },
	"before another limit": func(c *changedClient, i int) {
		c.set("SET p LIMIT " + c.limits[i] + " LIMIT FIXED FOREVER 1000000")
	},
	"behind another limit": func(c *changedClient, i int) {
		c.number = 1
		c.set("SET p LIMIT FIXED FOREVER 1000000 LIMIT " + c.limits[i])
	},
	"of overrides": func(c *changedClient, i int) {
		c.set("SET p LIMIT FIXED 1s 9000")
		c.set("OVERRIDE p u LIMIT " + c.limits[i])
	},
	"of a pattern, then a key, then a policy": func(c *changedClient, i int) {
		switch i {
		case 0:
			c.set("SET p LIMIT FIXED 1s 9000")
			c.set("OVERRIDE p u* LIMIT " + c.limits[i])
		case 1:
			c.set("OVERRIDE p u LIMIT " + c.limits[i])
		default:
			c.set("SET p LIMIT " + c.limits[i])
			c.set("OVERRIDE p u* NONE")
			c.set("OVERRIDE p u NONE")
		}
	},
	"of overrides that end by themselves": func(c *changedClient, i int) {
		next := "SET p LIMIT " + c.limits[min(i+1, len(c.limits)-1)]
		if i == 0 {
			c.set(next)
		}
		end := fmt.Sprintf(" TTL %dms", c.lasts[i].Milliseconds())
		if c.lasts[i] == 0 {
			end = ""
		}
		c.set("OVERRIDE p u LIMIT " + c.limits[i] + end)
		c.set(next)
	},
	"while the policy is disabled": func(c *changedClient, i int) {
		if i > 0 {
			c.set("DISABLE p")
		}
		c.set("SET p LIMIT " + c.limits[i] + " DISABLED")
		c.set("ENABLE p")
	},
	"behind no limit": func(c *changedClient, i int) {
		if i > 0 {
			c.set("OVERRIDE p * UNLIMITED TTL 1h")
		}
		c.set("SET p LIMIT " + c.limits[i])
		if i > 0 {
			c.set("OVERRIDE p * NONE")
		}
	},
}

// changedClient runs one case in one form.
type changedClient struct {
	*testClient
	limits []string        // the definitions in their order
	lasts  []time.Duration // how long each lasts; 0 for the last one
	number int             // of the limit that changes
	looks  bool            // looks precede each check
}

func (c *changedClient) set(line string) {
	c.t.Helper()
	require.NotContains(c.t, c.say("RL.POLICY "+line), "-", line)
}

// TestChangedDefinitions checks that from a change on the new definition counts and what was used stays used, for each
// kind of limit and each way to change it. Looks tell what the next check answers, and change nothing.
func TestChangedDefinitions(t *testing.T) {
	for name, steps := range changed {
		for form, define := range forms {
			for _, looks := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, looks %v", name, form, looks), func(t *testing.T) {
					c := &changedClient{testClient: defaultClient(t), looks: looks}
					c.plan(strings.Split(strings.TrimSpace(steps), "\n"))
					c.run(strings.Split(strings.TrimSpace(steps), "\n"), define)
				})
			}
		}
	}
}

// plan lists the definitions of a case.
func (c *changedClient) plan(lines []string) {
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if limit, is := strings.CutPrefix(line, "limit "); is {
			c.limits, c.lasts = append(c.limits, limit), append(c.lasts, 0)
		} else if d, is := strings.CutPrefix(line, "+"); is && len(c.lasts) > 0 {
			c.lasts[len(c.lasts)-1] += c.duration(d)
		}
	}
	c.lasts[len(c.lasts)-1] = 0
}

func (c *changedClient) duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	require.NoError(c.t, err)
	return d
}

func (c *changedClient) run(lines []string, define func(*changedClient, int)) {
	defined := 0
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "limit ") {
			define(c, defined)
			defined++
		} else if d, is := strings.CutPrefix(line, "+"); is {
			c.say(fmt.Sprint("DEBUG CLOCK ADVANCE ", c.duration(d).Milliseconds()))
		} else {
			cost, want, _ := strings.Cut(line, " = ")
			check := "RL.CHECK p u COST " + cost
			if c.looks {
				c.look(check, want)
			}
			require.Equal(c.t, want+" p", c.say(check), "%s: %s", line, c.say("RL.POLICY GET p"))
		}
	}
}

// look compares what looks tell with the answer that a check is about to get. Names come first, because they look up no
// policy.
func (c *changedClient) look(check, want string) {
	name := fmt.Sprintf("policy|p|%d|u", c.number)
	reads := []string{c.say("PTTL " + name), c.say("EXISTS " + name), c.say("KEYS *"),
		c.say("HMGET " + name + " remaining idle_in_ms limit")}
	now := strings.Fields(c.say("RL.CHECK p u COST 0"))
	if now[3] == "0" {
		require.Equal(c.t, []string{"-2", "0", strings.ReplaceAll(reads[2], name, ""), "nil nil nil"}, reads)
	} else {
		require.Equal(c.t, []string{now[3], "1", now[1] + " " + now[3] + " " + now[4]},
			[]string{reads[0], reads[1], reads[3]})
		require.Contains(c.t, reads[2], name)
	}
	explained := strings.Fields(c.say("RL.EXPLAIN " + check))
	five := []string{explained[1], explained[3], explained[5], explained[7], explained[9]}
	require.Equal(c.t, want, strings.Join(five, " "), "EXPLAIN %s", check)
}
