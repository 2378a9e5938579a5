// The same as agents.py, with ioredis: a fleet of agents that share one budget.
import { randomUUID } from 'node:crypto';
import Redis from 'ioredis';

const STEP = 50; // units that a run holds at a time; one step of its work costs no more
const TTL = '60s'; // a run that says nothing for so long is dead, and what it held counts as used
const PATIENCE = 30; // seconds for which a call is repeated while weir has no leader

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export class Spent extends Error {}

// Weir is any of several nodes.
export class Weir {
  constructor(addresses) {
    this.current = 0; // the node that is asked
    // ioredis repeats a command by itself after a lost connection; a repetition counts once here, but call does it.
    this.nodes = addresses.map((address) => {
      const [host, port] = address.split(':');
      const node = new Redis({ host, port, commandTimeout: 2000, maxRetriesPerRequest: 0, retryStrategy: () => 100 });
      return node.on('error', () => {});
    });
  }

  // call sends a command. A repetition is safe: the ID of a hold, SEQ and COMMIT make it count once.
  async call(...words) {
    for (const end = Date.now() + PATIENCE * 1000; ;) {
      const asked = this.current;
      try {
        return await this.nodes[asked].call(...words);
      } catch (err) {
        const [word] = err.message.split(' ');
        const again = !/^[A-Z]+$/.test(word) || ['TRYAGAIN', 'CLUSTERDOWN', 'UNKNOWN', 'OVERLOADED'].includes(word);
        if (!again || Date.now() > end) throw err;
      }
      this.current = (asked + 1) % this.nodes.length;
      await pause(100);
    }
  }

  close() {
    this.nodes.forEach((node) => node.disconnect());
  }
}

// Run is one run of an agent. It pays from the team's budget of the month, within a budget of its own.
export class Run {
  constructor(weir, team) {
    // The braces keep all keys of a team in one hash slot.
    Object.assign(this, { weir, team: `{${team}}`, id: `{${team}}:${randomUUID()}`, held: 0, used: 0, extensions: 0 });
  }

  async begin() {
    const [allowed] = await this.weir.call(
      'RL.RESERVE', 'month', this.team, STEP, TTL, 'AND', 'run', this.id, 'ID', this.id, 'EXPIRE', 'take');
    if (!allowed) throw new Spent();
    this.held = STEP;
  }

  // step makes sure that the next step is paid, and is no loop, before it begins.
  async step(action, cost) {
    if (this.used + cost > this.held) {
      const [allowed] = await this.weir.call('RL.EXTEND', this.id, STEP, 'SEQ', this.extensions + 1);
      if (!allowed) throw new Spent();
      this.extensions++;
      this.held += STEP;
    }
    const [allowed] = await this.weir.call(
      'RL.CHECK', 'loops', `${this.id}:${action}`, 'ID', `${this.id}:${this.used}`);
    if (!allowed) throw new Spent();
    this.used += cost;
  }

  async end() {
    await this.weir.call('RL.COMMIT', this.id, this.used);
  }
}

// A fleet of agents runs until the budget is spent. Most runs are short, and a few cost a hundred times the mean.
let used = 0;
let atDenial;

async function one(weir, team) {
  const run = new Run(weir, team);
  try {
    await run.begin();
  } catch (err) {
    if (!(err instanceof Spent)) throw err;
    atDenial ??= used;
    return false;
  }
  let going = true;
  try {
    const steps = Math.min(Math.floor(Math.random() ** (-1 / 1.2)), 400);
    for (let i = 0; i < steps; i++) {
      const cost = 1 + Math.floor(Math.random() * STEP);
      await run.step(`tool-${i}`, cost); // here the agent would work
      used += cost;
    }
  } catch (err) {
    if (!(err instanceof Spent)) throw err;
    atDenial ??= used;
    going = false;
  }
  await run.end();
  return going;
}

async function agent(weir, team) {
  while (await one(weir, team));
}

const [team, agents] = process.argv.slice(2);
const weir = new Weir((process.env.WEIR ?? '127.0.0.1:6380').split(','));
await Promise.all(Array.from({ length: Number(agents) }, () => agent(weir, team)));
console.log(JSON.stringify({ 'used at the first denial': atDenial, used }));
weir.close();
