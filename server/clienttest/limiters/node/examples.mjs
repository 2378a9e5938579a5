// The examples of the libraries' own READMEs, as they stand there but for the address
// and smaller limits. Called with a port; prints what clients of the web servers got.
import { createRequire } from 'node:module'
import express from 'express'
import { rateLimit } from 'express-rate-limit'
import Fastify from 'fastify'
import { Redis } from 'ioredis'
import { RedisStore } from 'rate-limit-redis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { createClient } from 'redis'

const port = Number(process.argv[2])
const require = createRequire(import.meta.url)

async function ask(name, url, headers) {
  const got = []
  for (let i = 0; i < 4; i++) {
    const reply = await fetch(url, { headers: { 'x-user': 'one' } })
    got.push([reply.status, ...headers.map(h => reply.headers.get(h))].join(' '))
  }
  console.log(`${name}: ${got.join(', ')}`)
}

async function expressRateLimit() {
  const client = createClient({ socket: { port } })
  await client.connect()
  const limiter = rateLimit({
    windowMs: 15 * 60 * 1000,
    limit: 2,
    standardHeaders: true,
    legacyHeaders: false,
    store: new RedisStore({ sendCommand: (...args) => client.sendCommand(args) }),
  })
  const app = express()
  app.use(limiter)
  app.get('/', (_, reply) => reply.send('hello'))
  const server = app.listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  await ask('express', `http://127.0.0.1:${server.address().port}/`, ['ratelimit-remaining'])
}

async function fastify() {
  const app = Fastify()
  await app.register(require('@fastify/rate-limit'), {
    max: 2, timeWindow: '1 minute', redis: new Redis({ port, connectTimeout: 500, maxRetriesPerRequest: 1 }),
  })
  app.get('/', async () => ({ hello: 'world' }))
  await ask('fastify', await app.listen({ port: 0, host: '127.0.0.1' }), ['x-ratelimit-remaining', 'retry-after'])
}

async function flexible() {
  const redisClient = new Redis({ port, enableOfflineQueue: false })
  await new Promise(resolve => redisClient.once('ready', resolve))
  const rateLimiterRedis = new RateLimiterRedis({ storeClient: redisClient, points: 2, duration: 5, blockDuration: 60, keyPrefix: 'rlflx' })
  const rateLimiterMiddleware = (req, res, next) => {
    rateLimiterRedis.consume(req.headers['x-user'])
      .then(() => next())
      .catch(rejRes => res.set('Retry-After', String(rejRes.msBeforeNext / 1000)).status(429).send('Too Many Requests'))
  }
  const app = express()
  app.use(rateLimiterMiddleware)
  app.get('/', (_, reply) => reply.send('hello'))
  const server = app.listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  await ask('flexible', `http://127.0.0.1:${server.address().port}/`, ['retry-after'])
}

await expressRateLimit()
await fastify()
await flexible()
process.exit(0)
