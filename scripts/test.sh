#!/bin/sh
# Runs the tests of "make test" (all), "make test-quick" (quick) and "make test-faults" (faults), and with what all tests
# need any others (suite ARGUMENTS of go test).
set -eu
cd "$(dirname "$0")/.."

go=${GO:-go}

# suite runs tests. testrun names each package with its time, once a minute what runs, and at the end the skipped tests.
# With STRICT=1, a skip fails unless scripts/skips.txt lists its reason. -count=1 keeps Go from taking results from its
# cache: the cache does not know that a test which builds weir depends on all of weir's source.
suite() {
	dir=.
	if [ "$1" = -C ]; then
		dir=$2
		shift 2
	fi
	build_weir
	# shellcheck disable=SC2086 # no word, or a word and a file
	$go run ./internal/testrun ${STRICT:+-strict} ${skipped:+-plain $skipped} -- -C "$dir" -count=1 "$@"
}

# run_tests has the tag weirfaults, which compiles in known mistakes that some tests switch on (internal/faults).
run_tests() { run_tests_in . "$@"; }

# run_tests_in tests packages of the module in a directory.
run_tests_in() {
	module=$1
	shift
	suite -C "$module" -tags weirfaults "$@"
}

# build_weir builds the weir that all tests start. Every user may run it.
build_weir() {
	[ -z "${WEIRTEST_BINARY:-}" ] || return 0
	WEIRTEST_BINARY=$work/weir
	CGO_ENABLED=0 $go build -o "$WEIRTEST_BINARY" ./cmd/weir
	export WEIRTEST_BINARY
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

# A busy machine makes tests slow. So processor time limits a test's process, to what two processors give in ten
# minutes. The limit by the clock only ends tests that hang.
ulimit -t 1200
patience=40m

# The packages whose tests take longest are first, so that at the end no package runs alone.
longest='./engine ./cmd/weir ./internal/clustertest/sim ./examples/systems'

# These tests run real processes under faults. They take six minutes, and wait most of the time. .ci/run runs them.
processes='./internal/clustertest/chaos'

# Goroutines share the data of these packages, so their tests run under the race detector. The tests that skip there
# (internal/race) run once more, plainly.
race='./raftstore ./raftstore/router ./persistence ./server/... ./raftstore/... ./persistence/...
	./client/... ./bench/... ./internal/connlimit ./certs ./latency ./policyfile'
# The tests of this package run both ways. Most of them have one goroutine, and the longest of these skip under the race
# detector.
twice=./engine
# Many tests wait for nodes and processes, so more packages than processors run at the same time.
at_once=3

# without LIST prints all packages but those in LIST.
without() {
	left=$($go list ./...)
	for package in $($go list "$@"); do left=$(echo "$left" | grep -vx "$package"); done
	echo "$left"
}

# Only the race detector needs a C compiler.
has_race() { [ "$($go env CGO_ENABLED)" = 1 ]; }

plain() {
	echo "Plain run: Go compiles for a minute or two, then it tests $(echo "$*" | wc -w | tr -d ' ') packages; each is named when it is done."
	# shellcheck disable=SC2046 # a list of packages
	CGO_ENABLED=0 run_tests -timeout $patience -p $at_once $($go list $longest) "$@"
}

under_race() {
	echo "Race run: testing $(echo "$*" | wc -w | tr -d ' ') packages under the race detector, for which Go compiles once more."
	skipped=$work/skipped run_tests -timeout $patience -race -p $at_once "$@"
}

# skipped_by_race runs the tests that the race run has skipped, except those of packages that the plain run has.
skipped_by_race() {
	grep -v "^$twice " "$work/skipped" >"$work/again" || return 0
	echo "Plain run of the tests that mean nothing under the race detector:"
	# shellcheck disable=SC2046 # a list of packages
	CGO_ENABLED=0 run_tests -timeout $patience -run "^($(cut -d' ' -f2 "$work/again" | sort -u | paste -sd'|' -))\$" \
		$(cut -d' ' -f1 "$work/again" | sort -u)
}

# Other people's clients and the browser have a module of their own, so that nobody who imports weir's client gets
# their versions.
clients() {
	echo "The tests with other people's clients and with a browser."
	run_tests_in server/clienttest -timeout $patience "$@" ./...
}

all() {
	if ! has_race; then
		# shellcheck disable=SC2086,SC2046
		plain $(without $processes)
		clients
		echo "SKIPPED: the race run needs a C compiler and CGO_ENABLED=1 (on Debian: apt install gcc libc6-dev)"
		return
	fi
	failed=
	# shellcheck disable=SC2086,SC2046 # lists of packages
	under_race $($go list $race $twice) || failed=race
	clients -race & # they wait most of the time
	clients=$!
	skipped_by_race || failed="$failed plain"
	# shellcheck disable=SC2086,SC2046
	plain $(without $processes $race) || failed="$failed plain"
	wait $clients || failed="$failed clients"
	[ -z "$failed" ] || { echo "FAILED:$failed"; return 1; }
}

# Packages with few imports are first. So the first results come while Go compiles the rest.
first='./latency ./httpfields ./internal/nearest ./internal/connlimit ./raftstore/wire ./engine'
# The tests of these packages mostly wait for nodes and processes.
waiting='./raftstore ./bench/... ./client/...'

quick() {
	echo "Left out: the race run, what starts clusters of processes or waits for nodes, and what -short leaves out (make test has them)."
	# shellcheck disable=SC2086,SC2046
	CGO_ENABLED=0 run_tests -short -timeout 15m $($go list $first) $(without $processes $waiting ./internal/clustertest/sim ./docker ./examples/...)
}

faults() {
	echo "Real processes under faults: some minutes."
	CGO_ENABLED=0 run_tests -timeout $patience $processes
}

"$@"
