// The same as outgoing.py, with ioredis.
import Redis from 'ioredis';

const POLICY = 'outgoing';
const PROVIDER = 'api.example.com';
const TURN = 60; // seconds for which a call waits for its turn
const LONGEST = 3600; // seconds of a pause, whatever the provider says

let refused = 0;

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

// work makes calls until none is left. RL.WAIT needs a connection of its own.
async function work(url, worker) {
  const [host, port] = (process.env.WEIR ?? '127.0.0.1:6380').split(':');
  const weir = new Redis({ host, port });
  while (left-- > 0) {
    await call(weir, url, worker);
    calls++;
  }
  weir.disconnect();
}

const [url, workers, number] = process.argv.slice(2);
let left = Number(number);
let calls = 0;
await Promise.all(Array.from({ length: Number(workers) }, (_, i) => work(url, `node-${i}`)));
console.log(JSON.stringify({ calls, refused }));
