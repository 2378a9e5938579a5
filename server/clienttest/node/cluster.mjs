// Runs commands through the cluster modes of node-redis and ioredis, and through their Sentinel modes.
// clusterforeign_test.go says how it is called.
import { createInterface } from 'node:readline'
import { Cluster as IOCluster, Redis as IORedis } from 'ioredis'
import { Cluster as IOCluster5 } from 'ioredis-5'
import { createCluster, createSentinel } from 'redis'

const [name, ...addresses] = process.argv.slice(2)

const nodes = addresses.map(address => {
  const [host, port] = address.split(':')
  return { host, port: Number(port) }
})

const complain = error => console.error(`${error.name}: ${error.message}`)

class NodeRedis {
  constructor(client) {
    this.client = client
    this.client.on('error', complain)
  }
  connect() { return this.client.connect() }
  send(commands) {
    return Promise.all(commands.map(args => this.client.sendCommand(args[1], false, args).catch(e => e)))
  }
  close() { this.client.destroy() }
}

class NodeRedisSentinel extends NodeRedis {
  constructor() {
    super(createSentinel({ name: 'mymaster', sentinelRootNodes: nodes }))
  }
  send(commands) {
    return Promise.all(commands.map(args => this.client.sendCommand(false, args).catch(e => e)))
  }
  close() { return this.client.close() }
}

class IO {
  constructor(client) {
    this.client = client
    this.client.on('error', complain)
  }
  connect() { return new Promise(done => this.client.once('ready', done)) }
  async send(commands) {
    if (commands.length === 1) return [await this.client.call(...commands[0]).catch(e => e)]
    const batch = this.client.pipeline()
    for (const args of commands) batch.call(...args)
    try {
      return (await batch.exec()).map(([error, reply]) => error ?? reply)
    } catch (error) {
      return commands.map(() => error)
    }
  }
  close() { this.client.disconnect() }
}

const clients = {
  'node-redis-cluster': () => new NodeRedis(createCluster({ rootNodes: addresses.map(a => ({ url: `redis://${a}` })) })),
  'node-redis-sentinel': () => new NodeRedisSentinel(),
  'ioredis-cluster': () => new IO(new IOCluster(nodes)),
  'ioredis-5-cluster': () => new IO(new IOCluster5(nodes)),
  'ioredis-sentinel': () => new IO(new IORedis({ name: 'mymaster', sentinels: nodes, failoverDetector: true })),
}

function plain(value) {
  if (value instanceof Map) return Object.fromEntries([...value].map(([k, v]) => [k, plain(v)]))
  return Array.isArray(value) ? value.map(plain) : value
}

// Both libraries have a class for error replies, with subclasses and other names.
function isReply(error) {
  return error.name === 'ReplyError' || ['SimpleError', 'ErrorReply', 'BlobError'].includes(error.constructor.name)
}

// ioredis sends a command again a few times and then hands on the last reply in its own words.
const lastReply = /^Too many Cluster redirections\. Last error: ReplyError: (.*)$/

function said(value) {
  if (!(value instanceof Error)) return { reply: plain(value) }
  const last = lastReply.exec(value.message)
  if (last) return { error: last[1], own: false }
  return isReply(value) ? { error: value.message, own: false } : { error: `${value.name}: ${value.message}`, own: true }
}

async function main() {
  const client = clients[name]()
  await client.connect()
  console.log('READY')
  for await (const line of createInterface({ input: process.stdin })) {
    console.log(JSON.stringify((await client.send(JSON.parse(line))).map(said)))
  }
  client.close()
  console.log('DONE')
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
