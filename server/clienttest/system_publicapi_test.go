package clienttest

import (
	"testing"
	"time"
)

// TestPublicAPI compares the decisions under public-api.yaml with the figures in the document of the public API.
func TestPublicAPI(t *testing.T) {
	s := startSystem(t, "public-api.yaml")
	s.run("one check", func() {
		const check = "RL.CHECK ip 192.0.2.1 api-key K1 users-write K1 service all"
		s.says("1 9 0 60000 10 users-write", check)
		s.admits(9, "0 0 60000 60000 10 users-write", check)
		s.contains("used=10 ", "RL.INSPECT policy|service|0|all")
		s.contains("used=10 ", "RL.INSPECT policy|api-key|0|K1")
		s.says("1 99 0 60000 100 users-read", "RL.CHECK ip 192.0.2.1 api-key K1 users-read K1 service all")
	})
	s.run("ip", func() {
		s.admits(1000, "0 0 3600000 3600000 1000 ip", "RL.CHECK ip 192.0.2.2") // Retry-After: 3600
	})
	s.run("api key", func() {
		s.says("1 0 0 86400000 10000 api-key", "RL.CHECK api-key K2 COST 10000")
		s.says("0 0 86400000 86400000 10000 api-key", "RL.CHECK api-key K2")
		s.says("1 90000 0 86400000 100000 api-key", "RL.CHECK api-key user:gold:7 COST 10000")
	})
	s.run("endpoints", func() {
		s.admits(100, "0 0 60000 60000 100 users-read", "RL.CHECK users-read K3")
		s.admits(10, "0 0 60000 60000 10 users-write", "RL.CHECK users-write K3")
		s.pass(59 * time.Second)
		s.says("0 0 1000 1000 100 users-read", "RL.CHECK users-read K3") // a new minute does not reset the count
	})
	s.run("the whole service", func() {
		s.pass(time.Hour)
		s.passUntil(0)
		s.says("1 0 0 120000 100000 service", "RL.CHECK service all COST 90000")
		s.says("0 0 60001 120000 100000 service", "RL.CHECK service all") // a tenth is reserved for high priority
		s.says("1 0 0 120000 100000 service", "RL.CHECK service all COST 10000 PRIORITY high")
		s.is(0, s.admitted(1, "RL.CHECK service all PRIORITY high"))
	})
	s.run("raised", func() {
		s.admits(10, "0 0 60000 60000 10 users-write", "RL.CHECK users-write K4")
		s.says("2", "RL.POLICY OVERRIDE users-write K4 LIMIT SLIDING 1m 15 TTL 1h")
		s.admits(5, "0 0 60000 60000 15 users-write", "RL.CHECK users-write K4")
	})
	s.run("blocked, but not for ever", func() {
		s.says("OK", "RL.BLOCK 192.0.2.13 15m")
		s.says("0 0 900000 900000 1000 ip", "RL.CHECK ip 192.0.2.13")
		s.pass(15 * time.Minute)
		s.says("1 999 0 3600000 1000 ip", "RL.CHECK ip 192.0.2.13")
	})
	s.run("settings", func() { // RATE_LIMIT_DEFAULT, _WINDOW, _PER_IP, _PER_USER and _BURST
		s.admits(1000, "0 0 3600000 3600000 1000 default", "RL.CHECK default all")
		s.admits(100, "0 0 3600000 3600000 100 per-ip", "RL.CHECK per-ip 192.0.2.1")
		s.admits(10000, "0 0 3600000 3600000 10000 per-user", "RL.CHECK per-user 42")
		s.admits(50, "0 0 3600 180000 50 burst", "RL.CHECK burst 42")
	})
}

// TestAlgorithms compares the commands with what the documents say about each algorithm.
func TestAlgorithms(t *testing.T) {
	s := startSystem(t, "public-api.yaml")
	s.run("fixed window", func() { // a hundred a minute, and two hundred within two seconds around its end
		s.passUntil(59 * time.Second)
		s.admits(100, "0 0 1000 1000 100", "RL.FIXED fixed 1m 100")
		s.pass(time.Second)
		s.admits(100, "0 0 60000 60000 100", "RL.FIXED fixed 1m 100")
	})
	s.run("sliding window log", func() {
		s.passUntil(59 * time.Second)
		s.admits(100, "0 0 60000 60000 100", "RL.SLIDING log 1m 100")
		s.pass(time.Second)
		s.admits(0, "0 0 59000 59000 100", "RL.SLIDING log 1m 100")
		s.pass(59 * time.Second)
		s.admits(100, "0 0 60000 60000 100", "RL.SLIDING log 1m 100")
	})
	s.run("sliding window counter", func() {
		s.passUntil(0)
		s.is(100, s.admitted(150, "RL.SLIDINGCOUNTER counter 1m 100"))
		s.pass(105 * time.Second) // three quarters of the next window have passed, so a quarter of the hundred counts
		s.is(75, s.admitted(150, "RL.SLIDINGCOUNTER counter 1m 100"))
		s.is(0, s.admitted(1, "RL.SLIDINGCOUNTER counter 1m 100"))
	})
	s.run("token bucket", func() {
		s.admits(100, "0 0 100 10000 100", "RL.TOKENBUCKET bucket 10/s 100")
		s.pass(time.Second)
		s.admits(10, "0 0 100 10000 100", "RL.TOKENBUCKET bucket 10/s 100")
	})
	s.run("leaky bucket", func() { // requests wait in the order of their arrival, until the queue is full
		for _, holdMs := range []string{"1 2 0 100 2", "1 1 100 200 2", "1 0 200 300 2"} {
			s.says(holdMs, "RL.LEAKYBUCKET leaky 10/s 2")
		}
		s.says("0 0 100 300 2", "RL.LEAKYBUCKET leaky 10/s 2")
	})
	s.run("status", func() { // limit, used and remaining; the question takes nothing
		s.is(15, s.admitted(15, "RL.SLIDING status 1m 100"))
		s.says("1 85 0 60000 100", "RL.SLIDING status 1m 100 COST 0")
		s.contains("limit=100 ", "RL.INSPECT status")
		s.contains("used=15 ", "RL.INSPECT status")
		s.contains("remaining=85 ", "RL.INSPECT status")
	})
	s.run("two in one millisecond", func() { // a sorted set of times would keep only one of them
		s.admits(2, "0 0 60000 60000 2", "RL.SLIDING same 1m 2")
	})
}
