#!/usr/bin/env bash
# rate-limiter-flexible 11.4.0 (npm), RateLimiterMemory.
# Guess: a denied consume takes nothing.
# Seen: denied points count as consumed, so consumedPoints grows beyond the limit with every denial.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund rate-limiter-flexible@11.4.0 >/dev/null
cat > run.cjs <<'JS'
const { RateLimiterMemory } = require('rate-limiter-flexible')
console.log('rate-limiter-flexible', require('rate-limiter-flexible/package.json').version)
const run = async () => {
  const limiter = new RateLimiterMemory({ points: 5, duration: 60 })
  const first = await limiter.consume('k', 6).catch(denied => denied)
  const second = await limiter.consume('k', 1).catch(denied => denied)
  console.log('cost 6 of 5: consumed', first.consumedPoints, '- then cost 1: consumed', second.consumedPoints, 'remaining', second.remainingPoints)
  if (first.consumedPoints !== 6 || second.consumedPoints !== 7) { console.log('CHANGED: a denial takes nothing'); process.exit(1) }
}
run()
JS
node run.cjs
