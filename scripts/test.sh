#!/bin/sh
# Runs the tests of "make test" (all), "make test-quick" (quick) and "make test-faults"
# (faults).
set -eu
cd "$(dirname "$0")/.."

go=${GO:-go}
module=github.com/weir-project/weir

# The tests build weir without its profile. With it, Go would compile everything that weir imports once more.
# A test in cmd/weir checks that "make build" uses the profile.
GOFLAGS="$($go env GOFLAGS) -pgo=off"
export GOFLAGS

# testrun names each package with its time, once a minute what runs, and at the end the skipped tests. With STRICT=1,
# a skip fails unless scripts/skips.txt lists its reason. -count=1 keeps Go from taking results from
# its cache: the cache does not know that a test which builds weir depends on all of weir's source.
# The tag weirfaults compiles in known mistakes that some tests switch on (internal/faults).
run_tests() { run_tests_in . "$@"; }

# run_tests_in tests packages of the module in a directory.
run_tests_in() {
	dir=$1; shift
	$go run ./internal/testrun ${STRICT:+-strict} -- -C "$dir" -count=1 -tags weirfaults "$@"
}

# A busy machine makes tests slow. So processor time limits a test's process, to what two processors give in ten
# minutes. The limit by the clock only ends tests that hang.
ulimit -t 1200
patience=40m

# Packages with few imports are first. So the first results come while Go compiles the rest.
first='./latency ./httpfields ./internal/nearest ./internal/connlimit ./raftstore/wire ./engine'

# These tests run real processes under faults. They take eight minutes, and wait most of the time. .ci/run runs
# them.
processes='./internal/clustertest/chaos'

# Goroutines share the data of these packages. Their tests run twice: plainly, and under the race detector.
race_twice='./engine/... ./server/... ./persistence/... ./raftstore/... ./internal/connlimit ./certs ./latency ./policyfile'
# The tests of these packages mostly wait for nodes and processes. They run only under the race detector, or
# without it if there is no C compiler.
race_only='./raftstore ./bench/... ./client/...'

# These tests try one input after the other in one goroutine. Only the plain run has them.
one_goroutine='^Test(Model|Exp2IsCorrectlyRounded|Damage.*|AFlippedBit.*|TheLogOpensAgainWhereverItEnds|ADamagedLogIsRefused|ALogWithoutAMark)$'
# The tests of raftstore wait most of the time, so other packages run at the same time.
race_packages=3

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
	CGO_ENABLED=0 run_tests -timeout $patience $($go list $first) "$@"
}

race() {
	echo "Race run: compiling once more, then testing under the race detector."
	# shellcheck disable=SC2086 # lists of packages
	run_tests -timeout $patience -race -p $race_packages -skip "$one_goroutine" $race_only $race_twice
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
	# shellcheck disable=SC2086,SC2046
	plain $(without $processes $race_only) || failed=plain
	race || failed="${failed:+$failed and }race"
	clients -race || failed="${failed:+$failed and }clients'"
	[ -z "${failed:-}" ] || { echo "FAILED: the $failed run"; return 1; }
}

quick() {
	echo "Left out: the race run, what starts clusters of processes or waits for nodes, and what -short leaves out (make test has them)."
	# shellcheck disable=SC2086,SC2046
	CGO_ENABLED=0 run_tests -short -timeout 15m $($go list $first) $(without $processes $race_only ./internal/clustertest/sim ./docker ./examples/...)
}

faults() {
	echo "Real processes under faults: some minutes."
	CGO_ENABLED=0 run_tests -timeout $patience $processes
}

"$1"
