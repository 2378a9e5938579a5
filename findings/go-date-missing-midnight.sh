#!/usr/bin/env bash
# Go's time.Date with the zone data of the package time/tzdata.
# Guess: midnight of a day whose clocks skip it (Havana, 8 March 2026) is 01:00, the first instant of that day.
# Seen: time.Date gives 23:00 of the day before, so a window "from midnight" would begin on the wrong day.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
	_ "time/tzdata"
)

func main() {
	havana, err := time.LoadLocation("America/Havana")
	if err != nil {
		panic(err)
	}
	got := time.Date(2026, 3, 8, 0, 0, 0, 0, havana)
	fmt.Println(runtime.Version(), "time.Date(2026-03-08 00:00 Havana) =", got)
	if got.Day() != 7 || got.Hour() != 23 {
		fmt.Println("CHANGED: it is no longer 23:00 of 7 March")
		os.Exit(1)
	}
}
GO
go run main.go
