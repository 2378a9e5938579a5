#!/usr/bin/env bash
# tzdata 2026.6 and 2025.2 (PyPI), zoneinfo of Python 3.
# Guess: after an installation of tzdata 2026.6, zoneinfo knows the rules of release 2026f.
# Seen: zoneinfo reads the database of the system first, here one of release 2025b. The package only serves names that the
# system lacks, so its upgrade changes nothing: Vancouver is an hour off.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check tzdata==2026.6
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$dir/system" tzdata==2025.2
cat > "$dir/run.py" <<'PY'
import datetime, importlib.metadata, platform, zoneinfo
noon = datetime.datetime(2026, 12, 15, 12, tzinfo=datetime.timezone.utc)
print("Python", platform.python_version(), "tzdata", importlib.metadata.version("tzdata"))
system = noon.astimezone(zoneinfo.ZoneInfo("America/Vancouver")).hour
zoneinfo.reset_tzpath(to=())
zoneinfo.ZoneInfo.clear_cache()
package = noon.astimezone(zoneinfo.ZoneInfo("America/Vancouver")).hour
print(f"noon UTC of 15 December 2026 in Vancouver: {system}:00 with a system of 2025b, {package}:00 without a system's database")
if (system, package) != (4, 5):
    raise SystemExit("CHANGED: the package is asked first, or a database has other rules")
PY
PYTHONTZPATH="$dir/system/tzdata/zoneinfo" "$dir/venv/bin/python" "$dir/run.py"
