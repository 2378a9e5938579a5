#!/usr/bin/env bash
# limits 5.8.0 (PyPI), FixedWindowRateLimiter over MemoryStorage.
# Guess: a "fixed window" of 10 seconds is aligned to the clock, as its name and its documents' drawings suggest.
# Seen: the window begins with the first hit of the key, so two keys have different windows at the same time.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check limits==5.8.0
"$dir/venv/bin/python" - <<'PY'
import importlib.metadata, time
from limits import parse, storage, strategies
print("limits", importlib.metadata.version("limits"))
limiter, ten = strategies.FixedWindowRateLimiter(storage.MemoryStorage()), parse("5/10second")
limiter.hit(ten, "a"); time.sleep(1.5); limiter.hit(ten, "b")
a, b = limiter.get_window_stats(ten, "a").reset_time, limiter.get_window_stats(ten, "b").reset_time
print(f"key b's window ends {b - a:.1f} s after key a's")
if not 1.2 < b - a < 2.2:
    raise SystemExit("CHANGED: the windows of two keys end together, or at other times")
PY
