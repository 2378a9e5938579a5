#!/bin/sh
# Runs the tests of "make test" (all), "make test-quick" (quick) and "make test-faults"
# (faults).
set -eu
cd "$(dirname "$0")/.."

go=${GO:-go}
module=github.com/weir-project/weir

# Without the profile of cmd/weir: with it, everything that weir imports is compiled once
# more. cmd/weir tests that make build uses it.
GOFLAGS="$($go env GOFLAGS) -pgo=off"
export GOFLAGS

# gotestsum names what was skipped, and why, at the end. Results are never taken from Go's cache:
# tests that build weir and run it depend on all of its source, which the cache does not know.
# The tag weirfaults compiles the known mistakes in that some tests switch on (internal/faults).
gotestsum() { $go run gotest.tools/gotestsum@v1.13.0 --format pkgname-and-test-fails -- -count=1 -tags weirfaults "$@"; }

# First those that import little, so that the first results come while the rest is compiled.
first='./latency ./httpfields ./internal/nearest ./internal/connlimit ./raftstore/wire ./engine'

# Real processes under faults: they take six minutes, most of it waiting. .ci/run runs them.
processes='./internal/clustertest/chaos'

# Packages whose code is shared between goroutines: tested under the race detector, too.
race_twice='./engine/... ./server/... ./persistence/... ./raftstore/... ./internal/connlimit ./certs ./latency ./policyfile'
# Of these the tests wait for nodes and processes far more than they compute. They run under
# the race detector alone, and without it where there is no C compiler.
race_only='./raftstore ./server/clienttest ./bench/... ./client/...'

# Tests that try one input after the other in one goroutine: the plain run has them.
one_goroutine='^Test(Model|Exp2IsCorrectlyRounded|Damage.*|AFlippedBit.*|TheLogOpensAgainWhereverItEnds|ADamagedLogIsRefused|ALogWithoutAMark)$'
# The tests of raftstore wait for most of their time: others run beside them.
race_packages=3

# without LIST prints all packages but those in LIST.
without() {
	left=$($go list ./...)
	for package in $($go list "$@"); do left=$(echo "$left" | grep -vx "$package"); done
	echo "$left"
}

# The race detector is linked by a C compiler; everything else is built without one.
has_race() { [ "$($go env CGO_ENABLED)" = 1 ]; }

plain() {
	echo "Plain run: compiling, then testing $(echo "$*" | wc -w | tr -d ' ') packages; each is named when it is done."
	# shellcheck disable=SC2046 # a list of packages
	CGO_ENABLED=0 gotestsum -timeout 10m $($go list $first) "$@"
}

race() {
	echo "Race run: compiling once more, then testing under the race detector."
	# shellcheck disable=SC2086 # lists of packages
	gotestsum -timeout 10m -race -p $race_packages -skip "$one_goroutine" $race_only $race_twice
}

all() {
	if ! has_race; then
		# shellcheck disable=SC2086,SC2046
		plain $(without $processes)
		echo "SKIPPED: the race run needs a C compiler and CGO_ENABLED=1 (on Debian: apt install gcc libc6-dev)"
		return
	fi
	# shellcheck disable=SC2086,SC2046
	plain $(without $processes $race_only)
	race
}

quick() {
	echo "Left out: the race run, what starts clusters of processes or waits for nodes, and what -short leaves out (make test has them)."
	# shellcheck disable=SC2086,SC2046
	CGO_ENABLED=0 gotestsum -short -timeout 5m $($go list $first) $(without $processes $race_only ./internal/clustertest/sim ./docker ./examples/...)
}

faults() {
	echo "Real processes under faults: some minutes."
	CGO_ENABLED=0 gotestsum -timeout 20m $processes
}

"$1"
