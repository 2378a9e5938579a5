package clienttest

import (
	"fmt"
	"testing"
	"time"
)

// TestMarketplace compares the decisions under marketplace.yaml, and other commands that the marketplace needs, with
// the figures in the marketplace's document.
func TestMarketplace(t *testing.T) {
	s := startSystem(t, "marketplace.yaml")
	s.run("edge", func() { // as nginx' limit_req with nodelay: the burst and one more request
		s.admits(51, "0 0 34 1700 51 edge-api", "RL.CHECK edge-api 192.0.2.1")
		s.admits(4, "0 0 12000 48000 4 edge-auth", "RL.CHECK edge-auth 192.0.2.1")
		s.pass(time.Second)
		s.is(30, s.admitted(60, "RL.CHECK edge-api 192.0.2.1"))
	})
	s.run("tiers", func() {
		for _, tier := range []struct {
			name             string
			perMinute, burst int
		}{
			{"auth", 5, 3}, {"deals-write", 20, 5}, {"deals-read", 60, 20}, {"channels-search", 30, 10},
			{"creative-upload", 10, 3}, {"dispute-submit", 5, 2}, {"admin", 120, 30}, {"global", 120, 30},
		} {
			check := "RL.CHECK " + tier.name + " 42"
			everyMs := 60_000 / tier.perMinute
			s.admits(tier.burst, fmt.Sprintf("0 0 %d %d %d %s", everyMs, everyMs*tier.burst, tier.burst, tier.name),
				check)
			admitted := 0
			for range 60_000 / 500 { // two requests a second, for a minute
				s.pass(500 * time.Millisecond)
				admitted += s.admitted(2, check)
			}
			s.is(tier.perMinute, admitted)
		}
	})
	s.run("a tier and all together", func() { // the limit for all does not count a request that the tier denies
		s.is(5, s.admitted(50, "RL.CHECK global 7 deals-write 7"))
		s.contains("used=5 ", "RL.INSPECT policy|global|0|7")
	})
	s.run("begun by users", func() {
		s.admits(5, "0 0 86400000 86400000 5 channel-deals", "RL.CHECK channel-deals c9")
		s.admits(3, "0 0 604800000 604800000 3 user-disputes", "RL.CHECK user-disputes 42")
		s.admits(10, "0 0 -1 -1 10 counter-offers", "RL.CHECK counter-offers n1")
		s.pass(24 * time.Hour)
		s.says("1 4 0 86400000 5 channel-deals", "RL.CHECK channel-deals c9")
		s.is(0, s.admitted(1, "RL.CHECK user-disputes 42"))
		s.pass(6 * 24 * time.Hour)
		s.is(3, s.admitted(4, "RL.CHECK user-disputes 42"))
		s.is(0, s.admitted(1, "RL.CHECK counter-offers n1"))
	})
	s.run("active deals", func() {
		for i := range 10 {
			s.says(fmt.Sprintf("1 %d 0 -1 10 d%d", 9-i, i), fmt.Sprintf("RL.ACQUIRE deals:42 10 0 HOLDER d%d", i))
		}
		s.says("0 0 -1 -1 10 d10", "RL.ACQUIRE deals:42 10 0 HOLDER d10")
		s.says("1 0 0 -1 10 d3", "RL.ACQUIRE deals:42 10 0 HOLDER d3") // a repeated request counts once
		s.says("1", "RL.RELEASE deals:42 d3")
		s.says("1 0 0 -1 10 d10", "RL.ACQUIRE deals:42 10 0 HOLDER d10")
	})
	s.run("paced calls", func() {
		for i := range 5 {
			s.says(fmt.Sprintf("1 %d %d %d 600 chain-api", 600-i, 100*i, 100*(i+1)), "RL.CHECK chain-api basic")
		}
		s.says("1 1499 40 80 1500 chain-api", "RL.CHECK chain-api advanced:1 COST 2")
		s.pass(time.Minute)
		s.admits(601, "0 0 100 60100 600 chain-api", "RL.CHECK chain-api basic")
	})
	s.run("messages", func() {
		s.says("1 0 0 1000 1 bot-chat", "RL.CHECK bot all bot-chat 1")
		s.says("0 0 1000 1000 1 bot-chat", "RL.CHECK bot all bot-chat 1")
		for chat := 2; chat <= 31; chat++ { // thirty a second, evenly; they have chats of their own
			turn := func(n int) int { return (n*1000 + 29) / 30 } // in milliseconds, rounded up
			s.says(fmt.Sprintf("1 0 %d 1000 1 bot-chat", turn(chat-1)),
				fmt.Sprintf("RL.CHECK bot all bot-chat %d", chat))
		}
		s.pass(time.Minute)
		s.admits(20, "0 0 60000 60000 20 bot-group", "RL.CHECK bot all bot-group g1")
	})
	s.run("forbidden addresses", func() {
		s.says("OK", "RL.BLOCK 192.0.2.66 1d REASON attack")
		s.says("0 0 86400000 86400000 51 edge-api", "RL.CHECK edge-api 192.0.2.66")
		s.says("0 0 86400000 86400000 3 auth", "RL.CHECK auth 192.0.2.66")
		s.says("1", "RL.UNBLOCK 192.0.2.66")
		s.says("1 50 0 34 51 edge-api", "RL.CHECK edge-api 192.0.2.66")
	})
}

// TestTierCounts checks that each tier counts the requests that it admits and denies.
func TestTierCounts(t *testing.T) {
	s := startSystem(t, "marketplace.yaml")
	s.is(4, s.admitted(7, "RL.CHECK edge-auth 192.0.2.1"))
	s.contains("admitted=4 ", "RL.POLICY GET edge-auth")
	s.contains("denied=3 ", "RL.POLICY GET edge-auth")
}

// lockout are the penalties of the document: two seconds from the fourth failure on, five from the sixth on, and a
// quarter of an hour from the eleventh on. Each failure has a step of its own, because only the strike that reaches a
// threshold begins a penalty.
const lockout = " 15m 4 2s 5 2s 6 5s 7 5s 8 5s 9 5s 10 5s 11 15m"

// TestMarketplaceLockout checks that failed logins are delayed longer and longer, and that the eleventh locks the user
// out.
func TestMarketplaceLockout(t *testing.T) {
	s := startSystem(t, "marketplace.yaml")
	s.run("steps", func() { s.lockout("RL.STRIKE login:42"+lockout, "") })
	s.run("policy", func() { // it counts attempts when they begin, and delays them
		for attempt, delayMs := range []int{0, 0, 0, 2000, 2000, 5000, 5000, 5000, 5000, 5000, 5000} {
			s.says(fmt.Sprintf("1 %d %d 900000 11 lockout", 10-attempt, delayMs), "RL.CHECK lockout 42")
		}
		s.is(0, s.admitted(60, "RL.CHECK lockout 42"))
		s.pass(15*time.Minute - time.Millisecond)
		s.says("0 0 1 1 11 lockout", "RL.CHECK lockout 42")
		s.pass(time.Millisecond)
		s.says("1 10 0 900000 11 lockout", "RL.CHECK lockout 42")
	})
	s.run("policy forgives", func() {
		s.is(11, s.admitted(12, "RL.CHECK lockout 44"))
		s.says("1", "RL.FORGIVE lockout 44")
		s.says("1 10 0 900000 11 lockout", "RL.CHECK lockout 44")
	})
	s.run("a quarter of an hour", func() { // in which each failure counts
		strike := "RL.STRIKE login:43" + lockout
		s.is(3, s.admitted(3, strike))
		s.pass(15*time.Minute - time.Millisecond)
		s.says("0 7 2000 900000 11", strike)
		s.pass(2 * time.Second)
		s.says("1 10 0 898000 11", strike+" COST 0")
	})
	s.run("forgiven", func() {
		strike := "RL.STRIKE login:44" + lockout
		s.is(3, s.admitted(5, strike))
		s.says("1", "RL.RESET login:44")
		s.says("1 10 0 900000 11", strike)
	})
}

// lockout sends failed logins until the user is locked out, and lets the time pass until the lock has ended. word is
// appended to each expected answer.
func (s *system) lockout(strike, word string) {
	s.says("1 11 0 0 11"+word, strike+" COST 0")
	for failure, waitMs := range []int{0, 0, 0, 2000, 2000, 5000, 5000, 5000, 5000, 5000, 900_000} {
		normal := 0
		if waitMs == 0 {
			normal = 1
		}
		s.says(fmt.Sprintf("%d %d %d 900000 11%s", normal, 10-failure, waitMs, word), strike)
		s.pass(time.Duration(max(waitMs-1, 0)) * time.Millisecond)
		s.is(normal, s.admitted(1, strike+" COST 0"))
		s.pass(time.Millisecond)
	}
	s.says("1 11 0 0 11"+word, strike+" COST 0") // unlocked, and all failures are forgotten
}
