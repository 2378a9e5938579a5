// outgoing does the same as outgoing.py, with weir's own client.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-project/weir/client"
)

const (
	policy, provider = "outgoing", "api.example.com"
	turn             = time.Minute // for which a call waits for its turn, and is repeated while weir has no leader
	longest          = time.Hour   // of a pause, whatever the provider says
)

var calls, refused, begun atomic.Int64

func main() {
	url, workers, number := os.Args[1], numberOf(os.Args[2]), numberOf(os.Args[3])
	rdb := redis.NewClient(&redis.Options{
		Dialer:   anyOf(strings.Split(cmp.Or(os.Getenv("WEIR"), "127.0.0.1:6380"), ",")),
		PoolSize: 2 * workers, ReadTimeout: turn + 10*time.Second, // a waiting call has a connection
		ContextTimeoutEnabled: true,
	})
	weir, err := client.New(rdb, client.Options{WhenDown: client.Closed, Timeout: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for begun.Add(1) <= int64(number) {
				if err := call(context.Background(), weir, url, fmt.Sprintf("go-%d", i)); err != nil {
					log.Fatal(err)
				}
				calls.Add(1)
			}
		})
	}
	all.Wait()
	_ = json.NewEncoder(os.Stdout).Encode(map[string]int64{"calls": calls.Load(), "refused": refused.Load()})
}

// anyOf connects to the first node that accepts: each node takes every command.
func anyOf(nodes []string) func(ctx context.Context, network, _ string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 2 * time.Second}
	return func(ctx context.Context, network, _ string) (conn net.Conn, err error) {
		for _, node := range nodes {
			if conn, err = dialer.DialContext(ctx, network, node); err == nil {
				break
			}
		}
		return conn, err
	}
}

// ask repeats what it asks until weir answers, but not longer than a turn. A turn whose answer was lost stays unused.
func ask(question func() error) error {
	for end := time.Now().Add(turn); ; time.Sleep(100 * time.Millisecond) {
		err := question()
		again := errors.Is(err, client.ErrBusy) || errors.Is(err, client.ErrUnavailable) ||
			errors.Is(err, client.ErrInDoubt)
		if !again || time.Now().After(end) {
			return err
		}
	}
}

// waitTurn returns at the turn of a call.
func waitTurn(ctx context.Context, weir *client.Client) error {
	return ask(func() error {
		d, err := weir.Queue(ctx, client.Request{Rule: client.Policy(policy), Key: provider}, turn)
		switch {
		case err != nil || d.Allowed:
			return err
		case d.Source == client.FromBusy || d.Source == client.FromFallback:
			return client.ErrBusy
		}
		return fmt.Errorf("no turn within %v", turn)
	})
}

// call calls the provider at its turn, and again after its pause if it answers 429.
func call(ctx context.Context, weir *client.Client, url, worker string) error {
	for {
		if err := waitTurn(ctx, weir); err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Worker", worker)
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		switch {
		case err != nil || answer.StatusCode == http.StatusOK:
			return err
		case answer.StatusCode != http.StatusTooManyRequests:
			return fmt.Errorf("the provider answers %s", answer.Status)
		}
		refused.Add(1)
		// Another worker may have learned of a longer pause.
		pause := pauseOf(answer.Header.Get("Retry-After"))
		if err := ask(func() error { return weir.BlockAtLeast(ctx, provider, pause, "429") }); err != nil {
			return err
		}
	}
}

// pauseOf returns the pause of a Retry-After, which is in seconds or a date.
func pauseOf(retryAfter string) time.Duration {
	pause := time.Second
	if seconds, err := strconv.Atoi(retryAfter); err == nil {
		pause = time.Duration(min(seconds, int(longest/time.Second))) * time.Second
	} else if date, err := http.ParseTime(retryAfter); err == nil {
		pause = time.Until(date)
	}
	return min(max(pause, 0), longest) + time.Millisecond
}

func numberOf(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return n
}
