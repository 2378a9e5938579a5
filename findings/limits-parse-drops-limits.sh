#!/usr/bin/env bash
# limits 5.8.0 (PyPI), parse.
# Guess: parse refuses a text with two limits, because it returns one. parse_many is for several.
# Seen: it returns the first and drops the others without a word, also if they are stricter.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check limits==5.8.0
"$dir/venv/bin/python" - <<'PY'
import importlib.metadata
import limits
print("limits", importlib.metadata.version("limits"))
text = "1000/hour; 5/minute"
print("parse:", limits.parse(text), "- parse_many:", ", ".join(map(str, limits.parse_many(text))))
if str(limits.parse(text)) != "1000 per 1 hour":
    raise SystemExit("CHANGED: parse does not drop the second limit")
PY
