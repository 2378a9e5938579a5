#!/usr/bin/env bash
# golang.org/x/time v0.15.0 (Go), rate.Limiter.
# Guess: Reserve gives a place in the queue, and Cancel after a later Reserve gives the place back in full.
# Seen: Cancel restores nothing once later reservations stand behind it: the wait of the next caller stays the same.
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
	"fmt"
	"os"
	"time"

	"golang.org/x/time/rate"
)

func main() {
	now := time.Now()
	l := rate.NewLimiter(1, 1)
	l.ReserveN(now, 1)
	first := l.ReserveN(now, 1)
	l.ReserveN(now, 1)
	before := l.TokensAt(now)
	first.CancelAt(now)
	after := l.TokensAt(now)
	fmt.Printf("golang.org/x/time v0.15.0: tokens before Cancel %.0f, after %.0f\n", before, after)
	if before != after {
		fmt.Println("CHANGED: Cancel gives the unit back")
		os.Exit(1)
	}
}
GO
go get golang.org/x/time@v0.15.0 >/dev/null 2>&1
go run .
