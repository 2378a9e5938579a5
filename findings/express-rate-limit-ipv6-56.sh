#!/usr/bin/env bash
# express-rate-limit 8.7.5 (npm), its default key, which is the address of the client.
# Guess: an IPv6 client is its /64, which is what a provider gives to one network at the least.
# Seen: it is its /56. Up to 256 networks share one limit, and a host with one /56 has one limit.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund express-rate-limit@8.7.5 express@5 >/dev/null
cat > run.mjs <<'JS'
import { readFileSync } from 'node:fs'
import express from 'express'
import { rateLimit } from 'express-rate-limit'
console.log('express-rate-limit', JSON.parse(readFileSync('node_modules/express-rate-limit/package.json')).version)
const app = express().set('trust proxy', 'loopback')
app.use(rateLimit({ windowMs: 60_000, limit: 1 })).get('/', (_, answer) => answer.send('ok'))
const server = app.listen(0, '127.0.0.1', async () => {
  const from = async ip => (await fetch('http://127.0.0.1:' + server.address().port, { headers: { 'X-Forwarded-For': ip } })).status
  const seen = [await from('2001:db8:0:1::1'), await from('2001:db8:0:2::1'), await from('2001:db8:0:100::1')]
  console.log('limit 1: first /64', seen[0], '- another /64 of the same /56', seen[1], '- another /56', seen[2])
  if (String(seen) !== '200,429,200') { console.log('CHANGED: a client is not its /56'); process.exitCode = 1 }
  server.close()
})
JS
node run.mjs
