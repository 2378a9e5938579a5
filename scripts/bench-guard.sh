#!/usr/bin/env bash
# Builds weir at the revision $1 in a temporary work tree, and compares bin/weir with it alternately. Further arguments go
# to weir-bench guard. The verdict is also in bin/bench-guard.txt. A slower revision is no failure.
set -euo pipefail
cd "$(dirname "$0")/.."
go="${GO:-go}"
revision="${1:?name the revision to compare with}"
shift
base="$(git rev-parse --verify --quiet --short "$revision^{commit}")" || {
  echo "there is no revision $revision here (in a shallow clone, fetch more of the history)"; exit 1; }
this="$(git rev-parse --short HEAD)"
git diff --quiet HEAD -- || this="$this with changes"

work="$(mktemp -d)"
remove() {
  git worktree remove --force "$work/tree" 2>/dev/null || true
  rm -rf "$work"
}
trap remove EXIT
git worktree add --quiet --detach "$work/tree" "$base"
(cd "$work/tree" && CGO_ENABLED=0 "$go" build -pgo=auto -o "$work/weir" ./cmd/weir)
bin/weir-bench guard --base "$work/weir" --base-name "$base" --this-name "$this" --json bin/bench-guard.json "$@" |
  tee bin/bench-guard.txt
