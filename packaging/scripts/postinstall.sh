#!/bin/sh
# Runs after the files are installed. deb passes "configure" and the previous version, if any.
# rpm passes the number of installed versions.
set -e

[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
if [ "$1" = configure ] && [ -n "$2" ] || [ "$1" = 2 ]; then
	# An upgrade. A service that does not run stays stopped.
	systemctl try-restart weir.service
elif [ "$1" = configure ] || [ "$1" = 1 ]; then
	echo "weir is installed and not started. Its settings are in /etc/weir/weir.yaml; to start it, now and at boot: systemctl enable --now weir"
fi
