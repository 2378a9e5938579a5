#!/bin/sh
# Installs the tools of the container tests that this machine lacks: the Docker client, an engine, compose.
# It installs each tool separately, and names those that stay missing. "make test-docker" runs it.
set -u

has() {
	case $1 in
	client) command -v docker ;;
	engine) docker version || command -v dockerd ;;
	compose) docker compose version || command -v docker-compose ;;
	esac >/dev/null 2>&1
}

# From release 13 on, Debian has the client in docker-cli. Before, it is in docker.io.
package() {
	case $1 in
	client) apt-cache show docker-cli >/dev/null 2>&1 && echo docker-cli || echo docker.io ;;
	engine) echo docker.io iptables ;;
	compose) echo docker-compose ;;
	esac
}

# RUNLEVEL=1 keeps Debian from starting the engine it installs: the tests start their own.
install() {
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
	echo "installing $*"
	apt-get update -qq
	RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

for piece in client engine compose; do
	# shellcheck disable=SC2046 # a tool may need several packages
	has $piece || install $(package $piece)
	has $piece || echo "Docker's $piece is missing: the tests that need it are skipped (on Debian: apt install $(package $piece))"
done
