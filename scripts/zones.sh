#!/bin/sh
# zones.sh VERSION writes the zone data of weir from the package tzdata of PyPI: 2026.6 is IANA's release 2026f.
set -eu
version=${1:?usage: scripts/zones.sh VERSION, for example 2026.6}
cd "$(dirname "$0")/../server/timezone"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip download --quiet --no-deps --dest "$dir" "tzdata==$version"
python3 - "$dir"/*.whl <<'PYTHON'
import sys
import zipfile

wheel = zipfile.ZipFile(sys.argv[1])
root = "tzdata/zoneinfo/"
with zipfile.ZipFile("zoneinfo.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
    for name in sorted(wheel.namelist()):
        data = wheel.read(name)
        if name.startswith(root) and data.startswith(b"TZif"):
            out.writestr(zipfile.ZipInfo(name[len(root):], (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    out.comment = next(line.split()[-1] for line in wheel.read(root + "tzdata.zi").splitlines() if b"version" in line)
PYTHON
