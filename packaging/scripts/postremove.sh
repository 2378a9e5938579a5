#!/bin/sh
# Runs after the files are removed. State and settings stay, except with deb's "purge".
set -e

if [ "$1" = purge ]; then
	rm -rf /var/lib/weir /var/lib/private/weir
	rmdir /etc/weir 2>/dev/null || true
fi
[ ! -d /run/systemd/system ] || systemctl daemon-reload
