# Installs, upgrades and removes the rpm. The test puts life.sh before this script.
rpm -K --nosignature "$OLD"
rpm -qpl "$OLD" | grep -x /usr/lib/systemd/system/weir.service
rpm -qp --configfiles "$OLD" | grep -x /etc/weir/weir.yaml
[ "$(rpm -qp --qf '%{LICENSE}' "$OLD")" = Apache-2.0 ]

# On a machine with deb packages, rpm does not know which package has sh. So dependencies are ignored.
rpm -i --nodeps "$OLD"
installed /usr/share/zsh/site-functions/_weir "$BEFORE"
start
weir keys block user:42 --for 1h
stop

echo 'max-clients: 100' >> /etc/weir/weir.yaml
rpm -U --nodeps "$NEW"
installed /usr/share/zsh/site-functions/_weir "$AFTER"
grep 'max-clients: 100' /etc/weir/weir.yaml
start
weir keys list 'user:*' | grep user:42
stop

rpm -e weir
[ ! -e /usr/bin/weir ]
grep 'max-clients: 100' /etc/weir/weir.yaml.rpmsave
[ -e /var/lib/weir/FORMAT ]
