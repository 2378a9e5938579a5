#!/bin/sh
# Three nodes of one cluster on this machine, to try out what a cluster does.
# Ctrl-C stops them all; their state stays in $CLUSTER_DIR for the next time.
# Run by "make run-cluster", from the root of the repository.
set -eu

weir=${WEIR:-bin/weir}
dir=${CLUSTER_DIR:-weir-data-cluster}
port=${FIRST_PORT:-6380} # clients at +0 +2 +4, HTTP at +1 +3 +5, nodes at +10 +11 +12
patience=60                   # seconds until the nodes must have elected a leader
nodes=''                      # those that run, like "a:1234 b:1235"

# Each node gets a process group of its own. Ctrl-C then reaches this script alone,
# which stops the nodes in order; two signals would make them stop at once. Without
# a terminal there is no Ctrl-C, and a shell may refuse.
set -m 2>/dev/null || :

# start ID NUMBER writes the node's configuration and starts it.
start() {
	cat >"$dir/$1.yaml" <<-EOF
		node-id: $1
		data-dir: $dir/$1
		listen: 127.0.0.1:$((port + 2 * $2))
		http: 127.0.0.1:$((port + 2 * $2 + 1))
		raft-addr: 127.0.0.1:$((port + 10 + $2))
		join: 127.0.0.1:$((port + 10)),127.0.0.1:$((port + 11)),127.0.0.1:$((port + 12))
	EOF
	"$weir" serve --config "$dir/$1.yaml" </dev/null >"$dir/$1.log" 2>&1 &
	nodes="$nodes $1:$!"
}

# drop_ended tells of each node that has ended, and forgets it.
drop_ended() {
	left=''
	for node in $nodes; do
		id=${node%:*} pid=${node#*:}
		if kill -0 "$pid" 2>/dev/null; then
			left="$left $node"
			continue
		fi
		status=0
		wait "$pid" 2>/dev/null || status=$?
		echo "Node $id (pid $pid) has ended with status $status. Its last words:"
		tail -n 3 "$dir/$id.log" | sed 's/^/    /'
		echo "The others go on. Unless it was removed, start it again with: $weir serve --config $dir/$id.yaml"
	done
	nodes=$left
}

# stop_all asks every node to stop, and waits until all have.
stop_all() {
	trap '' INT TERM HUP
	for node in $nodes; do kill -TERM "${node#*:}" 2>/dev/null || :; done
	for node in $nodes; do wait "${node#*:}" 2>/dev/null || :; done
}

# finish is what a signal does.
# shellcheck disable=SC2317 # called by the trap
finish() {
	echo
	echo "Stopping."
	stop_all
	echo "All nodes have stopped. Their state is kept in $dir; remove it to begin anew."
	exit 0
}

# await_leader waits until the nodes are one cluster. It gives up when one of them
# has ended: two would do, but a port that is taken should be known.
await_leader() {
	waited=0
	until "$weir" cluster status --addr "127.0.0.1:$port" >/dev/null 2>&1; do
		before=$nodes
		drop_ended
		waited=$((waited + 1))
		if [ "$nodes" != "$before" ] || [ "$waited" -gt "$patience" ]; then
			echo "The cluster does not come up; see the logs in $dir."
			stop_all
			exit 1
		fi
		sleep 1
	done
}

explain() {
	"$weir" cluster status --addr "127.0.0.1:$port"
	cat <<-EOF

		Talk to any node:        redis-cli -p $port RL.TOKENBUCKET user:42 5/m 3
		                         redis-cli -p $((port + 4)) RL.TOKENBUCKET user:42 5/m 3
		Follow the leader:       redis-cli -c -p $((port + 2))
		Look at the cluster:     $weir cluster status --addr 127.0.0.1:$((port + 2))
		Is a node ready:         curl 127.0.0.1:$((port + 1))/readyz
		Logs:                    tail -f $dir/?.log

		Kill the leader and ask another node: what was taken stays taken.
	EOF
	for node in $nodes; do echo "    kill -9 ${node#*:}    # node ${node%:*}"; done
	echo
	echo "Ctrl-C stops all three."
}

mkdir -p "$dir"
trap finish INT TERM HUP
start a 0
start b 1
start c 2
echo "Starting three nodes; waiting for them to elect a leader."
await_leader
explain
while [ -n "$nodes" ]; do
	sleep 1
	drop_ended
done
echo "No node is left."
exit 1
