# Functions for the tests of both kinds of packages. The test puts this script before deb.sh and rpm.sh.

# start runs weir as the systemd unit does: as a user without privileges, with the settings of /etc/weir. It waits
# until weir is ready.
start() {
	mkdir -p /var/lib/weir && chown 65534 /var/lib/weir
	WEIR_DATA_DIR=/var/lib/weir setpriv --reuid 65534 --clear-groups weir serve --config /etc/weir/weir.yaml &
	server=$!
	tries=0
	until weir healthcheck; do
		tries=$((tries + 1))
		[ $tries -lt 300 ]
		sleep 0.1
	done
}

stop() {
	kill $server
	wait $server
}

# installed FILE VERSION checks the installed files, FILE among them, and that weir and its manual say VERSION.
installed() {
	for file in /usr/bin/weir /etc/weir/weir.yaml /usr/lib/systemd/system/weir.service /usr/share/man/man1/weir-serve.1.gz \
		/usr/share/bash-completion/completions/weir "$1" /usr/share/fish/vendor_completions.d/weir.fish /usr/share/doc/weir/copyright; do
		[ -s "$file" ]
		[ "$(stat -c %U "$file")" = root ]
	done
	[ "$(stat -c %a /usr/bin/weir)" = 755 ]
	weir version | grep "^weir $2, commit "
	zcat /usr/share/man/man1/weir.1.gz | grep "weir $2"
	if command -v systemd-analyze; then
		systemd-analyze verify --man=no /usr/lib/systemd/system/weir.service > /run/verified 2>&1
		if grep weir.service: /run/verified; then exit 1; fi
	fi
}
