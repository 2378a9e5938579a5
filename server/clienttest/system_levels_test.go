package clienttest

import (
	"testing"
	"time"
)

// TestAPILevels compares the decisions under api-levels.yaml with the figures in the document of the API levels.
func TestAPILevels(t *testing.T) {
	s := startSystem(t, "api-levels.yaml")
	s.run("levels", func() {
		s.says("1 9 0 1000 10 levels", "RL.CHECK levels user:1")
		s.admits(9, "0 0 1000 1000 10 levels", "RL.CHECK levels user:1")
		s.pass(time.Second)
		s.is(90, s.seconds(9, "RL.CHECK levels user:1"))
		s.says("0 0 50000 59000 100 levels", "RL.CHECK levels user:1") // the minute's limit, until a unit expires
		for range 9 {
			s.pass(50 * time.Second)
			s.is(100, s.seconds(10, "RL.CHECK levels user:1"))
		}
		s.says("0 0 3050000 3599000 1000 levels", "RL.CHECK levels user:1") // the limit per hour
		s.pass(3050*time.Second - time.Millisecond)
		s.is(0, s.admitted(1, "RL.CHECK levels user:1"))
		s.pass(time.Millisecond)
		s.says("1 9 0 1000 10 levels", "RL.CHECK levels user:1")
	})
	s.run("a denial takes nothing", func() { // neither from the level that denies nor from the levels before it
		s.is(10, s.admitted(1000, "RL.CHECK levels user:2"))
		s.contains("used=10 ", "RL.INSPECT policy|levels|1|user:2")
		s.contains("used=10 ", "RL.INSPECT policy|levels|2|user:2")
	})
	s.run("a day", func() {
		s.says("2", "RL.POLICY SET levels LIMIT SLIDING 1s 10 LIMIT SLIDING 1m 100 LIMIT SLIDING 1h 1000 LIMIT "+
			"SLIDING 1d 5000")
		s.is(1, s.admitted(1, "RL.CHECK levels user:3"))
		s.contains("remaining=4999 ", "RL.INSPECT policy|levels|3|user:3")
	})
	s.run("api and premium", func() {
		s.admits(100, "0 0 60000 60000 100 api", "RL.CHECK api 192.0.2.1")
		s.pass(30 * time.Second)
		s.says("0 0 30000 30000 100 api", "RL.CHECK api 192.0.2.1") // Retry-After: 30
		s.pass(30 * time.Second)
		s.admits(100, "0 0 60000 60000 100 api", "RL.CHECK api 192.0.2.1")
		s.admits(1000, "0 0 60000 60000 1000 premium", "RL.CHECK premium user:1")
	})
	s.run("bucket", func() {
		s.admits(100, "0 0 100 10000 100 bucket", "RL.CHECK bucket user:1")
		s.pass(time.Second)
		s.says("1 10 0 9000 100 bucket", "RL.CHECK bucket user:1 COST 0")
		s.says("0 10 100 9000 100 bucket", "RL.CHECK bucket user:1 COST 11")
		s.says("1 0 0 10000 100 bucket", "RL.CHECK bucket user:1 COST 10")
	})
}
