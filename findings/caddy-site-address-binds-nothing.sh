#!/usr/bin/env bash
# github.com/caddyserver/caddy v2.11.9 (Go), with a site whose address is http://127.0.0.1 and a port.
# Guess: the site is reachable at 127.0.0.1 only, as with the listen address of nginx, HAProxy and Envoy.
# Seen: Caddy listens on all addresses of the machine. The host chooses requests by their Host header, and bind chooses
# addresses.
set -euo pipefail
dir=$(mktemp -d); pid=
trap 'if [ -n "$pid" ]; then kill "$pid" || true; wait "$pid" || true; fi; chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
GOBIN="$dir" GOFLAGS= go install github.com/caddyserver/caddy/v2/cmd/caddy@v2.11.9 >/dev/null 2>&1
export XDG_DATA_HOME="$dir" XDG_CONFIG_HOME="$dir"
at() { # the status of an answer at an address of this machine, or 000
  curl -s -o /dev/null -w '%{http_code}' --max-time 2 -H "Host: 127.0.0.1:$port" "http://$1:$port/" || true
}
serve() { # a site with a line more
  printf '{\n\tadmin off\n}\nhttp://127.0.0.1:%s {\n\t%s\n\trespond "site" 200\n}\n' "$port" "$1" > Caddyfile
  ./caddy run --adapter caddyfile --config Caddyfile >/dev/null 2>&1 &
  pid=$!
  for _ in $(seq 100); do [ "$(at 127.0.0.1)" = 200 ] && break; sleep 0.1; done
  echo "$(at 127.0.0.2)"
}
stop() { kill "$pid"; wait "$pid" || true; pid=; }
serve "" > open; stop
serve "bind 127.0.0.1" > bound; stop
echo "caddy v2.11.9 - at 127.0.0.2: $(cat open) - with bind 127.0.0.1: $(cat bound)"
if [ "$(cat open) $(cat bound)" != "200 000" ]; then
  echo "CHANGED: the address of the site binds, or bind does not"
  exit 1
fi
