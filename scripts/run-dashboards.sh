#!/bin/sh
# Starts three nodes, Prometheus and Grafana as containers, and says how long that took.
# "make run-dashboards" runs it from the root of the repository.
set -eu

secret=docker/secrets/cluster
files="-f docker/compose.yaml -f docker/compose.monitoring.yaml"
patience=180 # seconds from when the containers run until a leader must have been elected
began=$(date +%s)

docker info >/dev/null 2>&1 || {
	echo "no Docker engine answers: install one with compose, or take 'make run-cluster', which needs neither" >&2
	exit 1
}
if docker compose version >/dev/null 2>&1; then
	compose="docker compose $files"
else
	compose="docker-compose $files"
fi
if [ ! -e "$secret" ]; then
	(umask 077 && mkdir -p "${secret%/*}")
	od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$secret"
	chmod 444 "$secret"
fi
$compose up --build --detach
up=$(date +%s)
until $compose exec -T a weir cluster status >/dev/null 2>&1; do
	if [ $(($(date +%s) - up)) -gt "$patience" ]; then
		echo "no leader after $patience s: see '$compose logs'" >&2
		exit 1
	fi
	sleep 1
done
$compose exec -T a weir cluster status
cat <<EOF

after $(($(date +%s) - began)) s:
  a limiter    redis-cli -p ${WEIR_PORT_A:-6380} RL.TOKENBUCKET user:42 5/m 3
  its page     http://127.0.0.1:${WEIR_HTTP_PORT_A:-6381}/
  dashboard    http://127.0.0.1:${GRAFANA_PORT:-3000}/
  alerts       http://127.0.0.1:${PROMETHEUS_PORT:-9090}/alerts
stop it all with
  $compose down
EOF
