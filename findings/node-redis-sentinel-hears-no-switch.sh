#!/usr/bin/env bash
# node-redis 6.3.1 (npm), createSentinel, at a Redis Sentinel that makes a replica the primary.
# Guess: it subscribes to +switch-master, the channel that Redis documents for clients, and goes to the new primary by it.
# Seen: it subscribes to switch-master without the plus, on which a Sentinel never publishes. It learns of the change from
# +slave and other channels, so a server that publishes +switch-master alone is not heard.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund --prefix "$dir" redis@6.3.1 >/dev/null
redis-server --version | cut -d' ' -f1-3
cat >run.mjs <<'JS'
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { createClient, createSentinel } from 'redis'

const freePort = () => new Promise(done => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address()
    server.close(() => done(port))
  })
})
const [first, second, watcher] = [await freePort(), await freePort(), await freePort()]
const started = []
const start = (...args) => started.push(spawn('redis-server', args, { stdio: 'ignore' }))
const until = async condition => {
  for (let i = 0; i < 600; i++) {
    if (await condition().catch(() => false)) return
    await new Promise(done => setTimeout(done, 100))
  }
  throw new Error('waited a minute in vain for ' + condition)
}
try {
  start('--port', String(first), '--save', '')
  start('--port', String(second), '--save', '', '--replicaof', '127.0.0.1', String(first))
  writeFileSync('sentinel.conf', `port ${watcher}\nsentinel monitor mymaster 127.0.0.1 ${first} 1\n`)
  start('sentinel.conf', '--sentinel')
  let admin
  await until(async () => {
    admin = await createClient({ url: `redis://127.0.0.1:${watcher}`, socket: { reconnectStrategy: false } })
      .on('error', () => {}).connect()
    return true
  })
  await until(async () => JSON.stringify(await admin.sendCommand(['SENTINEL', 'REPLICAS', 'mymaster'])).includes(String(second)))

  const published = new Set()
  const listener = await admin.duplicate().connect()
  await listener.pSubscribe('*', (_message, channel) => published.add(channel))
  const client = createSentinel({ name: 'mymaster', sentinelRootNodes: [{ host: '127.0.0.1', port: watcher }] })
  client.on('error', () => {})
  const trace = []
  client.setTracer(trace)
  await client.connect()
  await until(async () => (await admin.sendCommand(['SENTINEL', 'FAILOVER', 'mymaster'])) === 'OK')
  await until(async () => published.has('+switch-master') && published.has('+slave') &&
    trace.some(line => line.includes('control channel message on +slave')))
  const heard = new Set(trace.map(line => /control channel message on (\S+)/.exec(line)?.[1]).filter(Boolean))
  console.log('the Sentinel published +switch-master:', published.has('+switch-master'))
  console.log('node-redis heard:', [...heard].sort().join(' '))
  await Promise.allSettled([client.close(), listener.close(), admin.close()])
  if (heard.has('+switch-master') || !heard.has('+slave')) throw new Error('CHANGED: other channels are heard')
} finally {
  for (const process of started) process.kill()
}
JS
node run.mjs
