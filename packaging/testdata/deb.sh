# Installs, upgrades, downgrades, removes and purges the deb. The test puts life.sh before this script.
dpkg --force-confold -i "$OLD"
installed /usr/share/zsh/vendor-completions/_weir "$BEFORE"
dpkg-query -W -f '${Conffiles}' weir | grep /etc/weir/weir.yaml
start
weir keys block user:42 --for 1h
stop

# An upgrade keeps changed settings and the state.
echo 'max-clients: 100' >> /etc/weir/weir.yaml
dpkg -i "$NEW" < /dev/null
installed /usr/share/zsh/vendor-completions/_weir "$AFTER"
grep 'max-clients: 100' /etc/weir/weir.yaml
start
weir keys list 'user:*' | grep user:42
stop

# A downgrade keeps them too.
dpkg -i "$OLD" < /dev/null
weir version | grep "^weir $BEFORE,"
start
weir keys list 'user:*' | grep user:42
stop

dpkg --remove weir
[ ! -e /usr/bin/weir ]
[ ! -e /usr/lib/systemd/system/weir.service ]
grep 'max-clients: 100' /etc/weir/weir.yaml
[ -e /var/lib/weir/FORMAT ]
dpkg --purge weir
[ ! -e /etc/weir ]
[ ! -e /var/lib/weir ]
