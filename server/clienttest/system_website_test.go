package clienttest

import (
	"testing"
	"time"
)

// TestWebsite compares the decisions under website.yaml with the figures in the website's document.
func TestWebsite(t *testing.T) {
	s := startSystem(t, "website.yaml")
	s.run("login", func() {
		s.says("1 9 0 6000 10 login", "RL.CHECK login ip:192.0.2.1")
		s.admits(9, "0 0 60000 60000 10 login", "RL.CHECK login ip:192.0.2.1")
		s.pass(6*time.Second - time.Millisecond)
		s.says("0 0 60000 54001 10 login", "RL.CHECK login ip:192.0.2.1")
		s.pass(time.Millisecond)
		s.admits(1, "0 0 60000 60000 10 login", "RL.CHECK login ip:192.0.2.1")
		s.pass(time.Minute)
		s.admits(10, "0 0 60000 60000 10 login", "RL.CHECK login ip:192.0.2.1")
	})
	s.run("fifteen tries a second apart", func() {
		admitted := 0
		for range 15 {
			admitted += s.admitted(1, "RL.CHECK login ip:192.0.2.15")
			s.pass(time.Second)
		}
		// The document says ten. It ignores the two tokens that the refill adds meanwhile.
		s.is(12, admitted)
	})
	s.run("recovery", func() {
		s.says("1 4 0 60000 5 recovery", "RL.CHECK recovery ip:192.0.2.1")
		s.admits(4, "0 0 300000 300000 5 recovery", "RL.CHECK recovery ip:192.0.2.1")
		s.pass(time.Minute)
		s.admits(1, "0 0 300000 300000 5 recovery", "RL.CHECK recovery ip:192.0.2.1")
	})
	s.run("default", func() {
		s.is(4, s.admitted(4, "RL.CHECK default ip:192.0.2.1"))
		s.says("1 95 0 500 100 default", "RL.CHECK default ip:192.0.2.1") // as X-RateLimit-Remaining shows it
		s.admits(95, "0 0 60000 10000 100 default", "RL.CHECK default ip:192.0.2.1")
		for range 60 {
			s.pass(time.Second)
			s.admits(10, "0 0 60000 10000 100 default", "RL.CHECK default ip:192.0.2.1")
		}
	})
	s.run("payment", func() {
		s.admits(30, "0 0 400 12000 30 payment", "RL.CHECK payment user:7")
		s.pass(2 * time.Second)
		s.admits(5, "0 0 400 12000 30 payment", "RL.CHECK payment user:7")
	})
	s.run("keys", func() {
		s.admits(10, "0 0 60000 60000 10 login", "RL.CHECK login ip:192.0.2.9")
		s.says("1 9 0 6000 10 login", "RL.CHECK login user:550e8400-e29b-41d4-a716-446655440000")
		s.says("1 99 0 100 100 default", "RL.CHECK default ip:192.0.2.9")
		s.says("policy|login|0|ip:192.0.2.9", "KEYS policy|login|*|ip:192.0.2.9")
		s.says("0", "EXISTS policy|recovery|0|ip:192.0.2.9")
		s.contains("rate-limit:ip:192.0.2.9:login", "KEYS rate-limit:*")
		s.says("1", "EXISTS rate-limit:user:550e8400-e29b-41d4-a716-446655440000:login")
		s.contains("0 of 10 left", "GET rate-limit:ip:192.0.2.9:login")
		s.contains("used=10 ", "RL.INSPECT policy|login|0|ip:192.0.2.9")
	})
	s.run("disabled", func() {
		s.is(10, s.admitted(10, "RL.CHECK login ip:192.0.2.10"))
		s.says("2", "RL.POLICY DISABLE login")
		s.is(1000, s.admitted(1000, "RL.CHECK login ip:192.0.2.10"))
		s.says("3", "RL.POLICY ENABLE login")
		s.says("0 0 60000 60000 10 login", "RL.CHECK login ip:192.0.2.10")
	})
}

// TestWebsiteInProduction compares the decisions under website-production.yaml with the website's document.
func TestWebsiteInProduction(t *testing.T) {
	s := startSystem(t, "website-production.yaml")
	s.admits(5, "0 0 60000 60000 5 login", "RL.CHECK login ip:192.0.2.1")
	s.admits(3, "0 0 600000 540000 3 recovery", "RL.CHECK recovery ip:192.0.2.1")
	s.admits(60, "0 0 60000 6000 60 default", "RL.CHECK default ip:192.0.2.1")
	s.pass(12 * time.Second)
	s.admits(1, "0 0 60000 60000 5 login", "RL.CHECK login ip:192.0.2.1")
	s.pass(168 * time.Second)
	s.admits(1, "0 0 600000 540000 3 recovery", "RL.CHECK recovery ip:192.0.2.1")
}

// TestWebsiteInDevelopment checks that every tier of website-development.yaml admits everything and counts nothing.
func TestWebsiteInDevelopment(t *testing.T) {
	s := startSystem(t, "website-development.yaml")
	s.says("default login payment recovery", "RL.POLICY LIST")
	for _, tier := range []string{"login", "recovery", "payment", "default"} {
		s.is(200, s.admitted(200, "RL.CHECK "+tier+" ip:192.0.2.1"))
	}
	s.says("0", "DBSIZE")
	s.says("2", "RL.POLICY ENABLE login")
	s.admits(10, "0 0 60000 60000 10 login", "RL.CHECK login ip:192.0.2.1")
}
