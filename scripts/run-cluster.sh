#!/bin/sh
# Runs nodes of one cluster on this machine, in three zones, and stops them all when it ends.
# "make run-cluster NODES=6 GROUPS=16 REPLICAS=3" runs it from the root of the repository. It may be run again with more
# nodes: the new ones join.
set -eu
# The variables of another server would change the nodes.
unset WEIR_JOIN WEIR_EXPECT WEIR_LISTEN WEIR_HTTP WEIR_RAFT_ADDR WEIR_ADDR
weir=$1 nodes=$2 groups=$3 replicas=$4 first=$5 dir=$6
patience=60 # seconds until a leader must have been elected

case "$nodes$first" in
*[!0-9]*) echo "NODES=$nodes FIRST_PORT=$first: give numbers" >&2 && exit 2 ;;
esac
# Ports for clients and HTTP begin at FIRST_PORT, and those for other nodes at FIRST_PORT + 101.
[ "$nodes" -ge 1 ] && [ "$nodes" -le 50 ] || { echo "NODES=$nodes: give 1 to 50" >&2 && exit 2; }

pids=
stop() {
	trap '' INT TERM HUP
	[ -z "$pids" ] || kill $pids 2>/dev/null || :
	wait
}
trap 'stop; exit 0' INT TERM HUP
trap stop EXIT

join=$(for i in $(seq "$nodes"); do printf '127.0.0.1:%d\n' $((first + 100 + i)); done | paste -sd, -)
mkdir -p "$dir"
for i in $(seq "$nodes"); do
	"$weir" serve --node-id "n$i" --zone "z$(((i - 1) % 3 + 1))" --data-dir "$dir/n$i" \
		--listen "127.0.0.1:$((first + 2 * i - 2))" --http "127.0.0.1:$((first + 2 * i - 1))" \
		--raft-addr "127.0.0.1:$((first + 100 + i))" --join "$join" --expect "$nodes" \
		--groups "$groups" --replicas "$replicas" >>"$dir/n$i.log" 2>&1 &
	pids="$pids $!"
done
echo "Starting $nodes nodes; waiting for leaders. Their logs are $dir/n1.log and so on."
waited=0
until "$weir" cluster status --addr "127.0.0.1:$first" >/dev/null 2>&1; do
	waited=$((waited + 1))
	if ! kill -0 $pids 2>/dev/null || [ $waited -gt $patience ]; then
		echo "no leader, see the logs in $dir:" >&2
		grep -h -e '^weir: error' -e level=ERROR "$dir"/n*.log | tail -n 3 >&2
		exit 1
	fi
	sleep 1
done
"$weir" cluster status --addr "127.0.0.1:$first"
cat <<EOT

  a limiter      redis-cli -p $first RL.TOKENBUCKET user:42 5/m 3
  the groups     $weir cluster status --addr 127.0.0.1:$first
  moves          $weir cluster plan --drain n2 --addr 127.0.0.1:$first
  a page         http://127.0.0.1:$((first + 1))/
  processes of the nodes:$pids
Ctrl-C stops all nodes.
EOT
wait
