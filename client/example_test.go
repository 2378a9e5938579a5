package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-project/weir/client"
)

// Examples that need a server are compiled and not run.
var (
	ctx    = context.Background()
	limits *client.Client
)

func ExampleNew() {
	rdb := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs:                 []string{"127.0.0.1:6380"},
		ContextTimeoutEnabled: true,
		DialerRetries:         1,
	})
	defer rdb.Close()
	limits, err := client.New(rdb, client.Options{WhenDown: client.Local, Instances: 4})
	if err != nil {
		log.Fatal(err)
	}
	defer limits.Close()
}

func ExampleRule_Name() {
	fmt.Println(client.TokenBucket(client.PerSecond(10), 100).Name())
	fmt.Println(client.Sliding(time.Minute, 5).Name())
	fmt.Println(client.Policy("login").Name())
	// Output:
	// RL.TOKENBUCKET 10/1s 100
	// RL.SLIDING 1m 5
	// login
}

func ExampleClient_Take() {
	chat := client.TokenBucket(client.PerSecond(10), 100)
	decision, err := limits.Take(ctx, chat, "user:42")
	if err != nil {
		log.Fatal(err)
	}
	if !decision.Allowed {
		fmt.Println("try again in", decision.RetryAfter)
	}
}

func ExamplePerMinute() {
	fmt.Println(client.PerMinute(90))
	// Output: 90/1m
}

func ExampleRule_Err() {
	fmt.Println(client.TokenBucket(client.PerSecond(10), 0).Err() != nil)
	// Output: true
}

func ExampleClient_DecideAll() {
	api := client.Policy("api")
	decisions, err := limits.DecideAll(ctx, []client.Request{
		{Rule: api, Key: "alice"},
		{Rule: api, Key: "bob", Cost: 5},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(decisions[0].Allowed, decisions[1].Remaining)
}

func ExampleClient_Queue() {
	reports := client.TokenBucket(client.PerMinute(6), 1)
	decision, err := limits.Queue(ctx, client.Request{Rule: reports, Key: "alice"}, 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(decision.Allowed)
}

func ExampleClient_Begin() {
	lockout := client.Attempts(15*time.Minute, client.Step{Threshold: 5, Penalty: 15 * time.Minute})
	attempt, decision, err := limits.Begin(ctx, client.Request{Rule: lockout, Key: "alice"})
	switch {
	case err != nil:
		log.Fatal(err)
	case attempt == nil:
		fmt.Println("locked for", decision.RetryAfter)
		return
	}
	// The password was right. After a wrong one nothing is sent.
	if err := attempt.Succeed(ctx); err != nil {
		log.Print(err)
	}
}

func ExampleClient_SetPolicy() {
	version, err := limits.SetPolicy(ctx, "login", client.PolicyTerms{
		Limits: []*client.Rule{client.Fixed(time.Minute, 5), client.Sliding(24*time.Hour, 50)},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("version", version)
}

func ExampleClient_Decide() {
	login := client.Policy("login", client.Fixed(time.Minute, 5))
	decision, err := limits.Decide(ctx, client.Request{Rule: login, Key: "alice", Cost: 2})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(decision.Allowed, decision.Policy, decision.Source)
}

func ExampleClient_Wait() {
	all := client.LeakyBucket(client.PerSecond(30), 100)
	perChat := client.TokenBucket(client.PerSecond(1), 1)
	within, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := limits.Wait(within, client.Request{Rule: all, Key: "bot"}, client.Request{Rule: perChat, Key: "chat:42"})
	if errors.Is(err, client.ErrDenied) {
		fmt.Println("it would take longer than five seconds")
	}
}

func ExampleClient_Lease() {
	ingest := client.TokenBucket(client.PerSecond(100_000), 100_000)
	lease, err := limits.Lease(ingest, "events", client.LeaseOptions{Batch: 1000})
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Close()
	decision, err := lease.Take(ctx)
	fmt.Println(decision.Allowed, err)
}

func ExampleClient_Acquire() {
	slot, decision, err := limits.Acquire(ctx, client.Slots(3, time.Minute), "reports:alice")
	switch {
	case err != nil:
		log.Fatal(err)
	case slot == nil:
		fmt.Println("all slots are taken; one is free in", decision.RetryAfter)
		return
	}
	defer slot.Release(ctx)
}

func ExampleClient_Reserve() {
	tokens := client.Policy("model-tokens")
	hold, decision, err := limits.Reserve(ctx, client.Request{Rule: tokens, Key: "team-a", Cost: 4000}, time.Minute)
	switch {
	case err != nil:
		log.Fatal(err)
	case hold == nil:
		fmt.Println("denied; try again in", decision.RetryAfter)
		return
	}
	left, err := hold.Commit(ctx, 1234)
	fmt.Println(left, err)
}
