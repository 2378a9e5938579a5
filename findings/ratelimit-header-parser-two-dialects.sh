#!/usr/bin/env bash
# ratelimit-header-parser 0.1.0 (npm).
# Guess: with RateLimit and X-RateLimit-* side by side, it reads one of the two.
# Seen: with both it finds nothing; with X-RateLimit-* alone it finds the limit.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund ratelimit-header-parser@0.1.0 >/dev/null
cat > run.mjs <<'JS'
import { readFileSync } from 'node:fs'
import * as parser from 'ratelimit-header-parser'
const parse = parser.parseRateLimit ?? parser.getRateLimit ?? parser.default
console.log('ratelimit-header-parser', JSON.parse(readFileSync('node_modules/ratelimit-header-parser/package.json')).version)
const x = { 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': '9', 'x-ratelimit-reset': '60' }
const both = { ...x, ratelimit: '"login";r=9;t=60', 'ratelimit-policy': '"login";q=10;w=60' }
const [alone, together] = [parse(x), parse(both)]
console.log('X-RateLimit-* alone:', JSON.stringify(alone))
console.log('with RateLimit beside:', JSON.stringify(together))
if (alone?.limit !== 10 || together?.limit === 10) { console.log('CHANGED: it reads both'); process.exit(1) }
JS
node run.mjs
