#!/usr/bin/env bash
# Runs the targets of continuous integration, one after the other, and times each.
#
#   scripts/gate.sh            the gate: the targets of $core, then each part whose paths have changed
#   scripts/gate.sh nightly    all parts
#   scripts/gate.sh part NAME  one part, if its paths have changed
#
# "Changed" compares this tree with the merge base of HEAD and $GATE_BASE, or origin/main if that is not set. On main
# itself, and in a clone that lacks the history, the base is unknown. Then the gate runs the parts that are likely to end
# within $minutes minutes of its start, and names those that it leaves to the nightly run; "part" runs the part.
# GATE_BASE=HEAD runs only what is not committed: on a clean tree, the core.
#
# .ci/run calls this, .github/workflows/ci.yml calls "part" through make, and nightly.yml calls all parts.
set -euo pipefail
cd "$(dirname "$0")/.."

core='lint test-tools test test-faults'
minutes=25

# A part is a target, the minutes that it takes on two cores, and the paths that it depends on beyond the core's tests.
parts='
test-docs-site  1  docs scripts/docs-site internal/pages *.md
test-kubernetes 1  packaging/helm docker/kubernetes docker/prometheus docker/grafana cmd/weir
test-ops        2  docker server/metrics
test-package    2  packaging .goreleaser.yaml scripts/tool.sh go.mod cmd internal/cli client
test-processors 3  engine server/commands/processor_test.go go.mod
test-examples   6  examples client httpfields server/httpapi server/envoyrls
test-clients   20  server/clienttest server/envoyrls server/resp server/scripts client README.md go.mod
'

# base prints the commit with which this tree is compared. It fails if that is unknown.
base() {
	local found
	if [ -n "${GATE_BASE:-}" ]; then git merge-base HEAD "$GATE_BASE" 2>/dev/null; return; fi
	found="$(git merge-base HEAD origin/main 2>/dev/null)" && [ "$found" != "$(git rev-parse HEAD)" ] && echo "$found"
}

# run runs a target and prints its time.
run() {
	local TIMEFORMAT="gate: make $1 took %0R s (processors: %0U s user, %0S s system)"
	time make "$1" </dev/null
}

# decide reports whether a part runs, and prints why.
decide() {
	local name=$1 takes=$2 files
	shift 2
	if [ -z "$base" ]; then
		if [ "$mode" = gate ] && ((SECONDS + takes * 60 > minutes * 60)); then
			echo "gate: $name is left to the nightly run: the base is unknown, and it takes $takes more minutes"
			return 1
		fi
		echo "gate: $name runs: the base is unknown"
	elif files="$(git diff --name-only "$base" -- "$@")" && [ -n "$files" ]; then
		echo "gate: $name runs: $(wc -l <<<"$files") files have changed, first ${files%%$'\n'*}"
	else
		echo "gate: $name does not run: nothing has changed in $*"
		return 1
	fi
}

mode=${1:-gate} only=${2:-}
case $mode:$only in
gate: | nightly:) export STRICT=1 ;; # a test that skips for a reason that scripts/skips.txt does not list fails the run
part:?*) grep -q "^$only " <<<"$parts" || { echo "gate: there is no part $only, only:$parts"; exit 2; } ;;
*) sed -n 's/^#   //p' "$0"; exit 2 ;;
esac
set -f # the paths are patterns of git
while read -r name _ paths; do
	for path in $paths; do
		git ls-files --error-unmatch -- "$path" >/dev/null || { echo "gate: correct the paths of $name"; exit 1; }
	done
done <<<"$parts"

base="$(base)" || base=
if [ "$mode" = gate ]; then
	go version
	echo "gate: compared with ${base:-an unknown base}"
	for target in $core; do run "$target"; done
fi
while read -r name takes paths; do
	[ -n "$name" ] && [ "${only:-$name}" = "$name" ] || continue
	# shellcheck disable=SC2086 # a list of paths
	if [ "$mode" = nightly ] || decide "$name" "$takes" $paths; then run "$name"; fi
done <<<"$parts"
echo "gate: $mode took $SECONDS s"
