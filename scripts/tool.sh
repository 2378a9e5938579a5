#!/bin/sh
# Prints the path of a Go program, PACKAGE@VERSION. The first call installs it beside Go's build cache, so that later
# calls neither compile nor link it.
set -eu
go=${GO:-go}
dir=$($go env GOCACHE)/programs/$($go env GOVERSION)/$(echo "$1" | tr / -)
if [ ! -d "$dir" ]; then
	new=$dir.$$
	trap 'rm -rf "$new"' EXIT
	GOOS='' GOARCH='' GOFLAGS=-pgo=off GOBIN=$new $go install "$1" >&2
	mv "$new" "$dir"
fi
echo "$dir"/*
