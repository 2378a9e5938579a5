#!/usr/bin/env bash
# p-throttle 8.1.1 (npm), which spaces calls out. Its interval is a timer of Node, which holds at most 2^31-1 ms (24.8 days).
# Guess: two calls in thirty days, or an error that the interval is too long.
# Seen: all calls run at once. Node sets the longer timer to 1 ms, and warns on stderr once the limit is reached.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund p-throttle@8.1.1 >/dev/null
cat > run.mjs <<'JS'
import { readFileSync } from 'node:fs'
import pThrottle from 'p-throttle'
console.log('p-throttle', JSON.parse(readFileSync('node_modules/p-throttle/package.json')).version, 'node', process.version)
const day = 24 * 60 * 60 * 1000
const ran = []
for (const days of [10, 30]) {
  const call = pThrottle({ limit: 2, interval: days * day })(() => { ran[days] = (ran[days] ?? 0) + 1 })
  for (let i = 0; i < 6; i++) call()
}
setTimeout(() => {
  console.log('of six calls, limit two: in 10 days', ran[10], '- in 30 days', ran[30])
  if (ran[10] !== 2 || ran[30] !== 6) { console.log('CHANGED: a long interval is kept'); process.exit(1) }
  process.exit()
}, 1000)
JS
node run.mjs 2>/dev/null
