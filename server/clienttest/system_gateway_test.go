package clienttest

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// TestGateway compares the decisions under gateway.yaml with the figures in the gateway's document.
func TestGateway(t *testing.T) {
	s := startSystem(t, "gateway.yaml")
	s.run("burst and rate", func() {
		s.admits(50, "0 0 100 5000 50 orders", "RL.CHECK orders 192.0.2.100")
		for range 20 {
			s.pass(time.Second)
			s.admits(10, "0 0 100 5000 50 orders", "RL.CHECK orders 192.0.2.100")
		}
		s.pass(5 * time.Second)
		s.says("1 49 0 100 50 orders", "RL.CHECK orders 192.0.2.100")
	})
	s.run("a new route", func() { // 15 - 1 left at first, nothing after the burst, five after half a second
		const route = "RL.CHECK 550e8400-e29b-41d4-a716-446655440000 "
		s.says("1 14 0 100 15 550e8400-e29b-41d4-a716-446655440000", route+"client1")
		s.says("1", "RL.POLICY SET route-2 LIMIT TOKENBUCKET 10/s 3")
		s.admits(3, "0 0 100 300 3 route-2", "RL.CHECK route-2 client1")
		s.is(14, s.admitted(20, route+"client1"))
		s.pass(500 * time.Millisecond)
		s.admits(5, "0 0 100 1500 15 550e8400-e29b-41d4-a716-446655440000", route+"client1")
	})
	s.run("half a token", func() { // frequent requests do not lose fractions: a whole token still arrives every second
		admitted := 0
		for range 200 {
			admitted += s.admitted(1, "RL.CHECK reports 192.0.2.100")
			s.pass(50 * time.Millisecond)
		}
		s.is(10, admitted)
	})
	s.run("looking", func() { // KEYS, HGETALL, TTL and DEL, as developers inspect a bucket
		s.is(30, s.admitted(30, "RL.CHECK orders 192.0.2.7"))
		s.says("policy|orders|0|192.0.2.7", "KEYS policy|orders|*|192.0.2.7")
		s.contains("remaining=20 ", "HGETALL policy|orders|0|192.0.2.7")
		s.says("3", "TTL policy|orders|0|192.0.2.7")
		s.says("1", "DEL policy|orders|0|192.0.2.7")
		s.says("1 50 0 0 50 orders", "RL.CHECK orders 192.0.2.7 COST 0")
		s.pass(time.Hour)
		s.says("0", "DBSIZE") // an unused bucket disappears by itself
	})
	s.run("all of them", func() { // deleting every bucket of a route
		s.is(2, s.admitted(1, "RL.CHECK orders 192.0.2.1")+s.admitted(1, "RL.CHECK orders 192.0.2.2"))
		s.says("1", "RL.POLICY SET orders LIMIT TOKENBUCKET 10/s 50 RESET")
		s.says("", "KEYS policy|orders|*")
	})
	s.run("no route", func() {
		s.contains("there is no policy 'nowhere'", "RL.CHECK nowhere 192.0.2.1")
	})
}

// TestGatewayInstances checks that several instances of the gateway which request the last token at once get it once.
func TestGatewayInstances(t *testing.T) {
	s := startSystem(t, "gateway.yaml")
	instances := []*redis.Client{s.Client, redis.NewClient(&redis.Options{Addr: s.addr})}
	t.Cleanup(func() { _ = instances[1].Close() })
	for range 100 {
		answers := make(chan int64, len(instances))
		var both sync.WaitGroup
		for _, instance := range instances {
			both.Go(func() {
				reply, err := instance.Do(t.Context(), "RL.CHECK", "reports", "192.0.2.1").Slice()
				if err == nil {
					answers <- reply[0].(int64)
				}
			})
		}
		both.Wait()
		require.Len(t, answers, 2)
		require.EqualValues(t, 1, <-answers+<-answers)
		s.pass(time.Second)
	}
}
