// Runs vectors.json through node-redis and ioredis. foreign_test.go says how it
// is called.
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Redis as IORedis } from 'ioredis'
import { Redis as IORedis5 } from 'ioredis-5'
import { createClient } from 'redis'

const [name, doing, file, host, port, password] = process.argv.slice(2)
const databaseURL = `redis://${host}:${port}/1`
const vectors = JSON.parse(readFileSync(file, 'utf8'))

// While the server is away its clients say so, and may.
let away = false

function complain(error) {
  if (!away) console.error(error)
}

class NodeRedis {
  constructor(password) {
    this.client = createClient(doing === 'database' ? { url: databaseURL } :
      { socket: { host, port: Number(port) }, password })
  }
  async connect(onError) {
    this.client.on('error', onError)
    await this.client.connect()
  }
  call(args) { return this.client.sendCommand(args) }
  pipeline(commands) { return Promise.all(commands.map(args => this.call(args))) }
  transaction(commands) {
    return commands.reduce((multi, args) => multi.addCommand(args), this.client.multi()).exec()
  }
  close() { this.client.destroy() }
}

class IO {
  constructor(Library, password) {
    this.client = new Library(doing === 'database' ? databaseURL : { host, port: Number(port), password })
  }
  async connect(onError) { this.client.on('error', onError) }
  call(args) { return this.client.call(...args) }
  pipeline(commands) { return this.together(this.client.pipeline(), commands) }
  transaction(commands) { return this.together(this.client.multi(), commands) }
  async together(batch, commands) {
    for (const args of commands) batch.call(...args)
    return (await batch.exec()).map(([error, reply]) => {
      if (error) throw error
      return reply
    })
  }
  close() { this.client.disconnect() }
}

const clients = {
  'node-redis': password => new NodeRedis(password),
  'ioredis': password => new IO(IORedis, password),
  'ioredis-5': password => new IO(IORedis5, password),
}

function same(want, got) {
  if (want === '*') return ['number', 'string'].includes(typeof got)
  if (Array.isArray(want)) {
    return Array.isArray(got) && want.length === got.length && want.every((w, i) => same(w, got[i]))
  }
  if (typeof want === 'object') {
    const names = Object.keys(want)
    return names.length === Object.keys(got).length && names.every(n => n in got && same(want[n], got[n]))
  }
  return want === got
}

// A map may be an object, a Map, or in RESP2 a flat array.
function asMap(reply) {
  if (reply instanceof Map) return Object.fromEntries(reply)
  if (!Array.isArray(reply)) return reply
  return Object.fromEntries(reply.flatMap((v, i) => i % 2 ? [] : [[v, reply[i + 1]]]))
}

function check(vector, got) {
  const ok = vector.error ? got instanceof Error && got.message.includes(vector.error)
    : vector.map ? typeof got === 'object' && same(vector.map, asMap(got))
    : same(vector.reply, got)
  if (!ok) throw new Error(`${JSON.stringify(vector)} answered ${got instanceof Error ? got : JSON.stringify(got)}`)
}

async function speak(client) {
  for (const vector of vectors.vectors) check(vector, await client.call(vector.send).catch(e => e))

  const { send, times, admitted } = vectors.pipeline
  const replies = await client.pipeline(Array(times).fill(send))
  const count = replies.filter(reply => reply[0] === 1).length
  if (replies.length !== times || count !== admitted) {
    throw new Error(`${count} of ${replies.length} admitted, not ${admitted}`)
  }

  const results = await client.transaction(vectors.transaction.map(v => v.send))
  if (results.length !== vectors.transaction.length) throw new Error(`EXEC answered ${results}`)
  vectors.transaction.forEach((v, i) => check(v, results[i]))
}

// Waits for the server to be back: what was sent meanwhile may fail.
async function back(client) {
  while (await client.call(['PING']).catch(() => '') !== 'PONG') await new Promise(done => setTimeout(done, 20))
  away = false
}

// One library rejects the command; the other says it in an error event, and goes
// on connecting.
async function mustBeRefused(password, word) {
  const client = clients[name](password)
  const error = await new Promise(done => {
    client.connect(done).then(() => client.call(['RL.TOKENBUCKET', 'k', '1', '1'])).then(done, done)
  })
  client.close()
  if (!(error instanceof Error && error.message.includes(word))) throw new Error(`not ${word}: ${error}`)
}

async function main() {
  const client = clients[name](password)
  await client.connect(complain)
  await speak(client)
  if (doing === 'restart') {
    away = true
    const input = createInterface({ input: process.stdin })
    const line = new Promise(done => input.once('line', done))
    console.log('READY')
    await line
    input.close()
    await back(client)
    await speak(client)
  } else if (doing === 'password') {
    await mustBeRefused('wrong', 'WRONGPASS')
    await mustBeRefused(undefined, 'NOAUTH')
  }
  client.close()
  console.log('DONE')
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
