// The same as outgoing.py, with ioredis.
import Redis from 'ioredis';

const POLICY = 'outgoing';
const PROVIDER = 'api.example.com';
const TURN = 60; // seconds for which a call waits for its turn, and a command is repeated while weir has no leader
const LONGEST = 3600; // seconds of a pause, whatever the provider says

let refused = 0;

// Weir is any of several nodes. RL.WAIT needs a connection of its own, so each worker makes one.
class Weir {
  constructor(addresses) {
    this.current = 0; // the node that is asked
    this.nodes = addresses.map((address) => {
      const [host, port] = address.split(':');
      const node = new Redis({ host, port, lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => 100 });
      return node.on('error', () => {});
    });
  }

  // call sends a command until a node answers what was decided. A turn whose answer was lost stays unused.
  async call(...words) {
    for (const end = Date.now() + TURN * 1000; ;) {
      try {
        return await this.nodes[this.current].call(...words);
      } catch (err) {
        const [word] = err.message.split(' ');
        const again = !/^[A-Z]+$/.test(word) || ['TRYAGAIN', 'CLUSTERDOWN', 'UNKNOWN', 'OVERLOADED'].includes(word);
        if (!again || Date.now() > end) throw err;
      }
      this.current = (this.current + 1) % this.nodes.length;
      await new Promise((done) => setTimeout(done, 100));
    }
  }

  close() {
    this.nodes.forEach((node) => node.disconnect());
  }
}

// call calls the provider at its turn, and again after its pause if it answers 429.
async function call(weir, url, worker) {
  for (;;) {
    const [allowed] = await weir.call('RL.WAIT', 'RL.CHECK', POLICY, PROVIDER, 'TIMEOUT', `${TURN}s`);
    if (!allowed) throw new Error(`no turn within ${TURN} seconds`);
    const answer = await fetch(url, { headers: { Worker: worker } });
    const text = await answer.text();
    if (answer.ok) return text;
    if (answer.status !== 429) throw new Error(`the provider answers ${answer.status}`);
    refused++;
    // GT only lengthens: another worker may have learned of a longer pause.
    const pause = pauseOf(answer.headers.get('Retry-After') ?? '1');
    await weir.call('RL.BLOCK', PROVIDER, `${pause}ms`, 'REASON', '429', 'GT');
  }
}

// pauseOf returns a Retry-After, which is in seconds or a date, in milliseconds.
function pauseOf(retryAfter) {
  const seconds = /^\d+$/.test(retryAfter) ? Number(retryAfter) : (Date.parse(retryAfter) - Date.now()) / 1000;
  return Math.floor(Math.min(Math.max(seconds, 0), LONGEST) * 1000) + 1;
}

// work makes calls until none is left.
async function work(url, worker) {
  const weir = new Weir((process.env.WEIR ?? '127.0.0.1:6380').split(','));
  while (left-- > 0) {
    await call(weir, url, worker);
    calls++;
  }
  weir.close();
}

const [url, workers, number] = process.argv.slice(2);
let left = Number(number);
let calls = 0;
await Promise.all(Array.from({ length: Number(workers) }, (_, i) => work(url, `node-${i}`)));
console.log(JSON.stringify({ calls, refused }));
