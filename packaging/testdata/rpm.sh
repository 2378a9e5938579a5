# The life of an rpm, after life.sh.
rpm -K --nosignature "$OLD"
rpm -qpl "$OLD" | grep -x /usr/lib/systemd/system/weir.service
rpm -qp --configfiles "$OLD" | grep -x /etc/weir/weir.yaml
[ "$(rpm -qp --qf '%{LICENSE}' "$OLD")" = Apache-2.0 ]

# This machine's packages are of another kind: what sh is in, rpm does not know here.
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
