#!/usr/bin/env bash
# @upstash/ratelimit 2.0.5 (npm), cachedFixedWindow, at Redis 7.
# Guess: the key of a window ends with the window, as that of fixedWindow does.
# Seen: it never ends. The script sets the time to live if the count is equal to the cost, and there compares a number
# with a string, which is never equal in Lua. So each window of each identifier leaves a key behind.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund --prefix "$dir" @upstash/ratelimit@2.0.5 @upstash/redis@1.35.0 ioredis@5.8.2 >/dev/null
redis-server --version | cut -d' ' -f1-3
cat >run.mjs <<'JS'
import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { Ratelimit } from '@upstash/ratelimit'
import Redis from 'ioredis'

const port = await new Promise(done => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address()
    server.close(() => done(port))
  })
})
const server = spawn('redis-server', ['--port', String(port), '--save', ''], { stdio: 'ignore' })
const redis = new Redis(port, '127.0.0.1')
redis.on('error', () => {}) // until the server is up
// The library calls these of @upstash/redis, which sends the same over HTTP.
const adapter = {
  eval: (script, keys, args) => redis.eval(script, keys.length, ...keys, ...args),
  scriptLoad: script => redis.script('LOAD', script),
  evalsha: (sum, keys, args) => redis.evalsha(sum, keys.length, ...keys, ...args),
}
const lifetime = async (prefix, limiter, cache) => {
  const limit = new Ratelimit({ redis: adapter, limiter, prefix, ephemeralCache: cache })
  const { success, pending } = await limit.limit('user')
  await pending
  const [key] = await redis.keys(prefix + ':*')
  return { success, ms: await redis.pttl(key) }
}
try {
  const fixed = await lifetime('fixed', Ratelimit.fixedWindow(3, '10 s'), false)
  const cached = await lifetime('cached', Ratelimit.cachedFixedWindow(3, '10 s'), new Map([['cached:user', 1]]))
  console.log('fixedWindow: admitted', fixed.success, '- the key ends within 10 s:', fixed.ms > 0 && fixed.ms <= 10000)
  console.log('cachedFixedWindow: admitted', cached.success, '- PTTL of the key:', cached.ms)
  if (!(fixed.ms > 0) || cached.ms !== -1) throw new Error('CHANGED: the keys have other lifetimes')
} finally {
  redis.disconnect()
  server.kill()
}
JS
node run.mjs
