#!/bin/sh
# Runs before the files go: deb calls it with "remove" or "upgrade", rpm with how many versions stay.
set -e

[ -d /run/systemd/system ] || exit 0
if [ "$1" = remove ] || [ "$1" = 0 ]; then
	systemctl disable --now weir.service
fi
