#!/bin/sh
# Renews the profile by which the Go compiler optimizes weir. It profiles a server that runs alone and the
# three nodes of a cluster, under the load of redis-benchmark, and a server that Envoy's rate limit calls ask.
# "make profile" runs it from the root of the repository.
set -eu

weir=bin/weir
out=cmd/weir/default.pgo
port=${FIRST_PORT:-6480} # clients at +0 to +4, nodes at +10 to +12, Envoy at +13
scale=${PROFILE_SCALE:-100000} # decisions in one part of a load
patience=60                   # seconds until a server must answer
dir=$(mktemp -d)
pids=''
trap 'kill $pids 2>/dev/null || :; rm -rf "$dir"' EXIT

# serve NUMBER FLAGS... starts a server with a profile.
serve() {
	n=$1
	shift
	"$weir" serve --listen "127.0.0.1:$((port + n))" --http '' --data-dir "$dir/$n" \
		--cpu-profile "$dir/$n.pprof" "$@" 2>"$dir/$n.log" &
	pids="$pids $!"
}

# ready NUMBER waits until that server answers decisions.
ready() {
	left=$patience
	until [ "$(redis-cli -p $((port + $1)) RL.TOKENBUCKET ready 1 1 2>&1 | wc -l)" = 5 ]; do
		left=$((left - 1))
		[ "$left" -gt 0 ] || { cat "$dir/$1.log" >&2; exit 1; }
		sleep 1
	done
}

# load NUMBER DEPTH PARTS COMMAND... sends COMMAND to a server PARTS times $scale times, on 50 connections with
# pipelines of DEPTH.
load() {
	n=$1 depth=$2 count=$(($3 * scale))
	shift 3
	redis-benchmark -q -p $((port + n)) -c 50 -P "$depth" -n "$count" -r 100000 "$@" >/dev/null
}

end() {
	for pid in $pids; do
		kill "$pid"
		wait "$pid"
	done
	pids=''
}

echo 'a server by itself'
serve 0
ready 0
redis-cli -p "$port" RL.POLICY SET one LIMIT TOKENBUCKET 1000 1000 >/dev/null
redis-cli -p "$port" RL.POLICY SET four LIMIT TOKENBUCKET 1000 1000 LIMIT TOKENBUCKET 10000/1m 10000 \
	LIMIT FIXED 1h 100000 LIMIT FIXED 1d 1000000 >/dev/null
load 0 128 60 RL.TOKENBUCKET key:__rand_int__ 1000 1000
load 0 128 10 RL.SLIDING log:__rand_int__ 1m 100
load 0 128 5 RL.SLIDINGCOUNTER counter:__rand_int__ 1m 100
load 0 128 5 RL.FIXED window:__rand_int__ 1m 100
load 0 128 10 RL.CHECK one user:__rand_int__
load 0 128 10 RL.CHECK four user:__rand_int__
load 0 1 2 RL.TOKENBUCKET key:__rand_int__ 1000 1000
end

echo 'a rate limit service'
cat >"$dir/limits.yaml" <<'EOF'
domain: web
descriptors:
  - {key: user, rate_limit: {unit: hour, requests_per_unit: 20}}
  - {key: path, value: "/api/*", rate_limit: {unit: minute, requests_per_unit: 1000000}}
EOF
serve 4 --rls "127.0.0.1:$((port + 13))" --envoy-config "$dir/limits.yaml" --envoy-fields
ready 4
(cd server/clienttest && WEIRTEST_BINARY=none WEIRTEST_RATELIMIT_COST="127.0.0.1:$((port + 13))" \
	go test -count=1 -run '^TestRateLimitServiceCost$' . >/dev/null)
end

echo 'three of a cluster'
for n in 1 2 3; do
	serve $n --node-id "n$n" --raft-addr "127.0.0.1:$((port + 9 + n))" --expect 3 \
		--join "127.0.0.1:$((port + 10)),127.0.0.1:$((port + 11)),127.0.0.1:$((port + 12))"
done
for n in 1 2 3; do ready $n; done
for n in 1 2 3; do # one of them leads, two forward
	load $n 128 7 RL.TOKENBUCKET key:__rand_int__ 1000 1000
	load $n 16 2 RL.TOKENBUCKET key:__rand_int__ 1000 1000
	load $n 128 10 RL.TOKENBUCKET used:__rand_int__ 1/1h 1 # each key is denied from its second decision on
done
end

go tool pprof -proto -output "$out" "$dir"/?.pprof >/dev/null
ls -l "$out"
