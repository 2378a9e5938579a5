#!/usr/bin/env bash
# limits 5.8.0 (PyPI), FixedWindowRateLimiter over MemoryStorage.
# Guess: a denied hit takes nothing, so a small request fits after a large one was denied.
# Seen: the denied hit of cost 10 counts, and a request of cost 1 is then denied although nothing was ever admitted.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check limits==5.8.0
"$dir/venv/bin/python" - <<'PY'
import importlib.metadata
from limits import parse, storage, strategies
print("limits", importlib.metadata.version("limits"))
limiter, limit = strategies.FixedWindowRateLimiter(storage.MemoryStorage()), parse("5/minute")
answers = [limiter.hit(limit, "k", cost=10), limiter.hit(limit, "k", cost=1)]
print("cost 10 of 5:", answers[0], "- then cost 1:", answers[1])
if answers != [False, False]:
    raise SystemExit("CHANGED: a denied hit takes nothing")
PY
