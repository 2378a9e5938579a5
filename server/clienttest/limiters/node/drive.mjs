// Lets a library of Node say the same again: random calls from a seed, while the
// server's clock goes on. limiters_test.go says how it is called; every answer is
// one line.
import { createRequire } from 'node:module'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { Redis as RestRedis } from '@upstash/redis'

const [library, port, seed, calls, rest] = process.argv.slice(2)
const require = createRequire(import.meta.url)
const ioredis = new Redis({ port: Number(port) })

let state = Number(seed)
function random(n) { // mulberry32
  state = (state + 0x6d2b79f5) | 0
  let t = Math.imul(state ^ (state >>> 15), 1 | state)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) % n
}

// The libraries add what the server says to their own clock, which stands still here. For
// those that send their time it goes on with the server's.
Date.now = () => 0
let passedMs = 0

async function flexible(client, more = {}) {
  const limiters = [[3, 1], [10, 2], [5, 7]].map(([points, duration], i) => new RateLimiterRedis({
    storeClient: client, keyPrefix: `p${i % 2}`, points, duration, blockDuration: i, ...more,
  }))
  const tell = r => r && [r.remainingPoints, r.msBeforeNext, r.consumedPoints, r.isFirstInDuration]
  return async () => {
    const limiter = limiters[random(3)], key = `k${random(3)}`, points = 1 + random(3)
    switch (random(14)) {
      case 0: return tell(await limiter.get(key))
      case 1: return await limiter.delete(key)
      case 2: return tell(await limiter.penalty(key, points))
      case 3: return tell(await limiter.reward(key, points))
      case 4: return tell(await limiter.block(key, 1 + random(3)))
      case 5: return tell(await limiter.set(key, points, 1 + random(3)))
      case 6: return tell(await limiter.consume(key, points, { customDuration: 1 + random(4) }).catch(r => r))
    }
    return limiter.consume(key, points).then(r => ['yes', tell(r)], r => ['no', tell(r)])
  }
}

async function express(name, options = {}) {
  const { RedisStore } = require(name)
  const stores = await Promise.all([500, 1500, 4000].map(async windowMs => {
    const store = new RedisStore({ ...options, sendCommand: (...args) => ioredis.call(...args) })
    await store.init({ windowMs })
    return store
  }))
  const tell = r => r && [r.totalHits, Number(r.resetTime)]
  return async () => {
    const store = stores[random(3)], key = `k${random(3)}`
    switch (random(12)) {
      case 0: return await store.resetKey(key)
      case 1: case 2: return await store.decrement(key)
      case 3: return store.get ? tell(await store.get(key)) : null
    }
    return tell(await store.increment(key))
  }
}

async function fastify(directory, make) {
  const Store = require(`./node_modules/${directory}/store/RedisStore.js`)
  const stores = [[false, false], [true, false], [false, true]].map((flags, i) => make(Store, flags, `f${i}-`))
  return () => new Promise(resolve => {
    const [store, incr] = stores[random(3)]
    const done = (error, answer) => resolve(error ? String(error) : answer)
    const key = `k${random(3)}`
    // Backing off for ever ends at 2^53 ms, where the judge, which counts in doubles, errs.
    if (random(20) === 0) return ioredis.del(['f0-', 'f1-', 'f2-'].map(prefix => prefix + key)).then(resolve)
    if (store.read && random(4) === 0) return store.read(key, done)
    incr(key, done, [300, 1000][random(2)], 2 + random(4))
  })
}

const recent = (Store, flags, prefix) => {
  const store = new Store(...flags, ioredis, prefix)
  return [store, store.incr.bind(store)]
}

async function hono(resetExpiryOnChange) {
  const { RedisStore } = require('@hono-rate-limiter/redis')
  const client = {
    scriptLoad: text => ioredis.script('LOAD', text),
    evalsha: (sha, keys, args) => ioredis.evalsha(sha, keys.length, ...keys, ...args),
    decr: key => ioredis.decr(key),
    del: key => ioredis.del(key),
  }
  const stores = await Promise.all([500, 1500, 4000].map(async windowMs => {
    const store = new RedisStore({ client, resetExpiryOnChange })
    await store.init({ windowMs })
    return store
  }))
  const tell = r => r && [r.totalHits, Number(r.resetTime)]
  return async () => {
    const store = stores[random(3)], key = `k${random(3)}`
    switch (random(12)) {
      case 0: return await store.resetKey(key)
      case 1: case 2: return await store.decrement(key)
      case 3: return tell(await store.get(key))
    }
    return tell(await store.increment(key))
  }
}

async function gcra() {
  Date.now = () => 1_700_000_000_000 + passedMs
  const limiter = require('redis-gcra')({ redis: ioredis, keyPrefix: 'p' })
  const terms = [[5, 1, 300], [10, 3, 1000], [7, 2.5, 777]]
  return async () => {
    const [burst, rate, period] = terms[random(3)], key = `k${random(3)}`
    switch (random(12)) {
      case 0: return await limiter.reset({ key })
      case 1: case 2: return await limiter.peek({ key, burst, rate, period })
    }
    return await limiter.limit({ key, burst, rate, period, cost: random(16) / 2 })
  }
}

// asyncLimiter calls async-ratelimiter, and koa the middleware of koa-ratelimit over it. Both send their own time, and
// the clocks of servers differ.
function asyncClock() {
  Date.now = () => 1_700_000_000_000 + Math.floor(passedMs)
  process.hrtime.bigint = () => BigInt(Math.round((passedMs + skewMs) * 1e6))
  let skewMs = 0
  return () => { skewMs = [0, 0, random(1000) / 1000, random(200), random(4000)][random(5)] }
}

async function asyncLimiter(name, terms) {
  const tick = asyncClock()
  const Limiter = require(name)
  const limiter = new Limiter({ db: ioredis })
  return async () => {
    tick()
    const [max, duration] = terms[random(terms.length)], id = `k${random(terms.length)}`
    if (random(100) === 0) return await ioredis.del(`limit:${id}`)
    const answer = await limiter.get({ id, max, duration, peek: random(8) === 0 })
    return [answer, await ioredis.zcard(`limit:${id}`), await ioredis.pttl(`limit:${id}`)]
  }
}

async function koa() {
  const tick = asyncClock()
  const ratelimit = require('koa-ratelimit')
  const middlewares = [[3, 500], [20, 3000], [5, 1000]].map(([max, duration]) => ratelimit({ db: ioredis, max, duration }))
  return async () => {
    tick()
    const seen = {}
    const ctx = { ip: `k${random(3)}`, state: {}, set: (name, value) => Object.assign(seen, value === undefined ? name : { [name]: value }) }
    await middlewares[random(3)](ctx, () => { seen.next = true })
    return [seen, ctx.status, ctx.body]
  }
}

async function nest(name) {
  const { ThrottlerStorageRedisService } = require(name)
  const storage = new ThrottlerStorageRedisService(ioredis)
  const terms = [[500, 3, 900], [1500, 4, 200], [800, 2, 800]]
  if (/-0[.][34]/.test(name)) { // without a block; the first takes seconds
    const windows = name.endsWith('0.3.3') ? [1, 2, 5] : [500, 1500, 4000]
    return () => storage.increment(`k${random(3)}`, windows[random(3)])
  }
  return () => storage.increment(`k${random(3)}`, ...terms[random(3)], 'default')
}

// semaphore takes, refreshes and releases mutexes whose identifiers others may have, too.
async function semaphore() {
  const { Mutex } = require('redis-semaphore')
  const mutexes = [0, 1, 2, 3, 4, 5].map(i => new Mutex(ioredis, `k${i % 3}`, {
    identifier: `me${i % 4}`, lockTimeout: 300 * (1 + i), refreshInterval: 0, acquireAttemptsLimit: 1,
  }))
  return async () => {
    const mutex = mutexes[random(6)]
    switch (random(4)) {
      case 0: return String(await mutex.release())
      case 1: return await mutex._refresh()
    }
    return await mutex.tryAcquire()
  }
}

// upstash calls limits of 3 and of 1000, over the REST form. Some limiters share a prefix. Their caches are off, but for
// the algorithm that needs one: then every call reaches the server.
async function upstash(name, rate) {
  Date.now = () => 1_700_000_000_000 + passedMs
  const { Ratelimit } = require(name)
  const redis = new RestRedis({ url: rest, token: 'token', retry: false })
  const make = (prefix, limiter, ephemeralCache = false) =>
    new Ratelimit({ redis, prefix, limiter, ephemeralCache, timeout: 0 })
  const limiters = [
    make('f3', Ratelimit.fixedWindow(3, '5 s')), make('f1000', Ratelimit.fixedWindow(1000, '30 s')),
    make('same', Ratelimit.slidingWindow(3, '6 s')), make('same', Ratelimit.slidingWindow(1000, '20 s')),
    make('s7', Ratelimit.slidingWindow(7, '4 s')),
    make('same', Ratelimit.tokenBucket(1, '2 s', 3)), make('t1000', Ratelimit.tokenBucket(400, '10 s', 1000)),
    make('c', Ratelimit.cachedFixedWindow(3, '5 s'), new Map()),
  ]
  return async () => {
    const which = random(limiters.length), limiter = limiters[which], id = `k${random(3)}`
    switch (random(20)) {
      case 0: return await limiter.resetUsedTokens(id)
      case 1: case 2: case 3: return await limiter.getRemaining(id)
    }
    const many = [1, 3, 6].includes(which) ? 100 : 1
    const { pending, ...answer } = await limiter.limit(id, random(3) ? { rate: many * rate() } : undefined)
    await pending
    return answer
  }
}

const libraries = {
  'upstash': () => upstash('@upstash/ratelimit', () => 1 + random(4)),
  'upstash-2.0.7': () => upstash('upstash-ratelimit-2.0.7', () => random(6) - 1),
  'upstash-2.0.8': () => upstash('upstash-ratelimit-2.0.8', () => random(6) - 1),
  'upstash-2.1.0': () => upstash('upstash-ratelimit-2.1.0', () => random(6) - 1),
  'upstash-2.2.0': () => upstash('upstash-ratelimit-2.2.0', () => random(6) - 1),
  'redis-semaphore': semaphore,
  'async-ratelimiter': () => asyncLimiter('async-ratelimiter', [[3, 500], [20, 3000], [7, 1500]]),
  'async-ratelimiter-1000': () => asyncLimiter('async-ratelimiter', [[1000, 300_000]]),
  'async-ratelimiter-1.5.2': () => asyncLimiter('async-ratelimiter-1.5.2', [[3, 500], [20, 3000], [7, 1500]]),
  'koa-ratelimit': koa,
  nest: () => nest('@nest-lab/throttler-storage-redis'),
  'nest-kkoomen-0.3.3': () => nest('nestjs-throttler-storage-redis-0.3.3'),
  'nest-kkoomen-0.4.4': () => nest('nestjs-throttler-storage-redis-0.4.4'),
  'nest-kkoomen': () => nest('nestjs-throttler-storage-redis'),
  'hono': () => hono(false),
  'hono-reset': () => hono(true),
  'redis-gcra': gcra,
  'rate-limiter-flexible': () => flexible(ioredis),
  'rate-limiter-flexible-node-redis': async () => {
    const client = createClient({ socket: { port: Number(port) } })
    await client.connect()
    return flexible(client, { useRedisPackage: true })
  },
  'rate-limit-redis': () => express('rate-limit-redis'),
  'rate-limit-redis-5': () => express('rate-limit-redis-5'),
  'rate-limit-redis-5-reset': () => express('rate-limit-redis-5', { resetExpiryOnChange: true }),
  'rate-limit-redis-4.2.2': () => express('rate-limit-redis-4.2.2'),
  'rate-limit-redis-4.2.0': () => express('rate-limit-redis-4.2.0', { resetExpiryOnChange: random(2) === 1 }),
  'fastify': () => fastify('@fastify/rate-limit', recent),
  'fastify-10.2': () => fastify('@fastify/rate-limit-10.2', recent),
  'fastify-10.1': () => fastify('@fastify/rate-limit-10.1', (Store, flags, prefix) => {
    const store = new Store(flags[0], ioredis, prefix)
    return [store, store.incr.bind(store)]
  }),
  'fastify-9': () => fastify('@fastify/rate-limit-9', (Store, flags, prefix) => {
    const store = new Store(ioredis, 700, flags[0], prefix)
    return [store, (key, done, windowMs, max) => store.incr(key, done, max, flags[1] ? 2 : -1)]
  }),
}

const call = await libraries[library]()
for (let i = 0; i < Number(calls); i++) {
  const stepMs = random(2) ? random(20) : random(random(900) + 1)
  await ioredis.call('DEBUG', 'CLOCK', 'ADVANCE', stepMs)
  passedMs += stepMs
  let answer
  try { answer = await call() } catch (error) { answer = `error ${error.message}` }
  console.log(JSON.stringify(answer ?? null))
}
process.exit(0)
