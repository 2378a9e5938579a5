package main

import (
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"
)

// documented are the variables in the documentation of a public API.
var documented = map[string]string{
	"RATE_LIMIT_ENABLED": "true", "RATE_LIMIT_ALGORITHM": "sliding_window", "RATE_LIMIT_DEFAULT": "1000",
	"RATE_LIMIT_WINDOW": "3600", "RATE_LIMIT_PER_IP": "100", "RATE_LIMIT_PER_USER": "10000", "RATE_LIMIT_BURST": "50",
}

// with returns the documented variables with some changes.
func with(pairs ...string) func(string) string {
	all := maps.Clone(documented)
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return all[name] }
}

func TestSettings(t *testing.T) {
	got, err := settingsOf(with())
	want := settings{enabled: true, algorithm: "sliding_window", window: time.Hour, burst: 50,
		limits: map[string]int64{"default": 1000, "per-ip": 100, "per-user": 10000}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatal(got, err)
	}
	for name, rule := range map[string]string{
		"fixed_window": "RL.FIXED 1h 1000", "fixed_window_counter": "RL.FIXED 1h 1000", "": "RL.SLIDING 1h 1000",
		"Sliding_Window_Log": "RL.SLIDING 1h 1000", "sliding_window_counter": "RL.SLIDINGCOUNTER 1h 1000",
		"token_bucket": "RL.TOKENBUCKET 1000/1h 50", "leaky_bucket": "RL.LEAKYBUCKET 1000/1h 1",
	} {
		s, err := settingsOf(with("RATE_LIMIT_ALGORITHM", name))
		if err != nil || s.rule(1000).Name() != rule {
			t.Error(name, s.rule(1000).Name(), err)
		}
	}
}

// TestBadSettings checks that an error names the variable and what it accepts.
func TestBadSettings(t *testing.T) {
	const requests = " must be a whole number of requests from 1 to 9007199254740992, not "
	const seconds = "RATE_LIMIT_WINDOW must be a whole number of seconds from 1 to 31622400, not "
	for want, getenv := range map[string]func(string) string{
		`RATE_LIMIT_ENABLED must be true or false, not "maybe"`: with("RATE_LIMIT_ENABLED", "maybe"),
		`RATE_LIMIT_ALGORITHM must be fixed_window, sliding_window, sliding_window_counter, token_bucket or ` +
			`leaky_bucket, not "gcra"`: with("RATE_LIMIT_ALGORITHM", "gcra"),
		`RATE_LIMIT_DEFAULT` + requests + `""`:      with("RATE_LIMIT_DEFAULT", ""),
		`RATE_LIMIT_DEFAULT` + requests + `"0"`:     with("RATE_LIMIT_DEFAULT", "0"),
		seconds + `"1h"`:                            with("RATE_LIMIT_WINDOW", "1h"),
		seconds + `""`:                              with("RATE_LIMIT_WINDOW", ""),
		`RATE_LIMIT_PER_IP` + requests + `"-1"`:     with("RATE_LIMIT_PER_IP", "-1"),
		`RATE_LIMIT_PER_USER` + requests + `"many"`: with("RATE_LIMIT_PER_USER", "many"),
		`RATE_LIMIT_BURST` + requests + `"1.5"`:     with("RATE_LIMIT_BURST", "1.5"),
		`RATE_LIMIT_PER_USER with RATE_LIMIT_ALGORITHM sliding_window: client: bad rule: RL.SLIDING: max must be a ` +
			`whole number from 1 to 1000000`: with("RATE_LIMIT_PER_USER", "2000000"),
	} {
		if _, err := settingsOf(getenv); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
