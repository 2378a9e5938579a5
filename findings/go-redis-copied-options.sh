#!/usr/bin/env bash
# github.com/redis/go-redis/v9 v9.23.0 (Go): a client is made with the options of another client, NewClient(old.Options()).
# Guess: both clients act alike.
# Seen: a client that was made without retries and timeouts (-1) has a copy that sends a command up to four times and
# waits five seconds. Options has 0 for "none", which NewClient takes for "the default". A command that counts then counts
# more than once.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat > go.mod <<'MOD'
module finding
go 1.24
MOD
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// sends returns how many times a client sends a command to a server that ends each connection without an answer.
func sends(c *redis.Client, received *atomic.Int64) int64 {
	before := received.Load()
	_ = c.Incr(context.Background(), "counter").Err()
	return received.Load() - before
}

func main() {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	var received atomic.Int64
	go func() {
		for conn, err := server.Accept(); err == nil; conn, err = server.Accept() {
			if n, _ := conn.Read(make([]byte, 1024)); n > 0 {
				received.Add(1)
			}
			_ = conn.Close()
		}
	}()
	// Protocol 2 without an identity: the first bytes of a connection are the command.
	first := redis.NewClient(&redis.Options{Addr: server.Addr().String(), Protocol: 2, DisableIdentity: true,
		MaxRetries: -1, ReadTimeout: -1})
	second := redis.NewClient(first.Options())
	one, two := sends(first, &received), sends(second, &received)

	version := ""
	info, _ := debug.ReadBuildInfo()
	for _, d := range info.Deps {
		if d.Path == "github.com/redis/go-redis/v9" {
			version = d.Version
		}
	}
	fmt.Println("go-redis", version, "- the client sends INCR", one, "time, with a read timeout of",
		first.Options().ReadTimeout, "- its copy sends it", two, "times, with", second.Options().ReadTimeout)
	if one != 1 || two != 4 || second.Options().ReadTimeout == 0 {
		fmt.Println("CHANGED: the copy acts like the client")
		os.Exit(1)
	}
}
GO
go get github.com/redis/go-redis/v9@v9.23.0 >/dev/null 2>&1
go run .
