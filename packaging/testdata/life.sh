# What an installed weir does, for both kinds of packages. It stands before deb.sh and rpm.sh.

# start runs weir as the unit does: as a user with nothing, with the settings of /etc/weir.
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

# installed says that each thing is in its place.
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
