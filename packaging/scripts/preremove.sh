#!/bin/sh
# Runs before the files are removed. deb passes "remove" or "upgrade", rpm the number of versions that remain.
set -e

[ -d /run/systemd/system ] || exit 0
if [ "$1" = remove ] || [ "$1" = 0 ]; then
	systemctl disable --now weir.service
fi
