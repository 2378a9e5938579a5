#!/usr/bin/env bash
# github.com/redis/go-redis v9.23.0 (Go), with its default options, on a server that accepts and answers nothing.
# Guess: a context with a deadline of 100 ms ends a command after 100 ms.
# Seen: the command ends only at the read timeout. The deadline counts only with ContextTimeoutEnabled.
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
	"time"

	"github.com/redis/go-redis/v9"
)

func took(addr string, keep bool) time.Duration {
	rdb := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: time.Second, MaxRetries: -1, Protocol: 2,
		DisableIdentity: true, ContextTimeoutEnabled: keep})
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	rdb.Get(ctx, "k")
	return time.Since(begun).Round(100 * time.Millisecond)
}

func main() {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	byDefault, enabled := took(silent.Addr().String(), false), took(silent.Addr().String(), true)
	fmt.Println("go-redis", redis.Version(), "- by default", byDefault, "- with ContextTimeoutEnabled", enabled)
	if byDefault < 900*time.Millisecond || enabled > 500*time.Millisecond {
		fmt.Println("CHANGED: the deadline counts by default, or never")
		os.Exit(1)
	}
}
GO
go get github.com/redis/go-redis/v9@v9.23.0 >/dev/null 2>&1
go run .
