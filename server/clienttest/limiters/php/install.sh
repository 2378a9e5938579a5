#!/bin/sh -e
# Unpacks PHP, phpredis and the parts of Laravel from Debian's packages into this directory, without root.
[ -x php ] && exit
v=$(apt-cache depends php-cli | sed -n 's/ *Depends: \(php[0-9.]*\)-cli$/\1/p')
apt-get -qq download "$v-cli" "$v-common" "$v-redis" "$v-igbinary" php-psr-container php-psr-simple-cache \
  php-illuminate-redis php-illuminate-support php-illuminate-contracts php-illuminate-collections php-illuminate-macroable
for package in *.deb; do dpkg -x "$package" .; done
rm -- *.deb
cat > php <<END
#!/bin/sh
cd "\$(dirname "\$0")"
exec "usr/bin/$v" -n -d extension_dir="\$(echo usr/lib/php/2*)" -d extension=igbinary -d extension=redis "\$@"
END
chmod +x php
